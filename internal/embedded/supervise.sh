# Runs a command for a program that may die at any moment.
#
# usage: sh supervise.sh SIGNAL REMOVE COMMAND [ARG...]
#
# File descriptor 3 is the read end of a pipe held open by that program. Each
# line on it is the number of a signal for the command. When it closes, the
# program is dead: the command gets SIGNAL, and the directory REMOVE (if any)
# goes too.
orphan=$1
remove=$2
shift 2

# Signals for the whole group are for the command; this shell ends after it.
trap : HUP INT QUIT TERM

"$@" 3<&- &
command=$!

(
	while read -r signal; do kill -"$signal" "$command"; done
	kill -"$orphan" "$command"
) <&3 &
watch=$!
exec 3<&-

# A trapped signal ends a wait early, so ask again until the command is gone.
while :; do
	wait "$command"
	code=$?
	kill -0 "$command" 2>/dev/null || break
done

# The watch ends by itself only when the program is dead.
kill -TERM "$watch" 2>/dev/null
if wait "$watch" && [ -n "$remove" ]; then
	rm -rf "$remove"
fi
exit "$code"
