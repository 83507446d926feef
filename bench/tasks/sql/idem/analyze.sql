vacuum (analyze) idem.tasks, idem.takes
