truncate idem.tasks, idem.takes
