# Keeps the folder $1 for a test process, which holds the other end of the input: when that ends, however it ends,
# nothing of the folder is left, neither processes nor files. A line of input is a signal for the processes that work
# in the folder; it is answered with a line when all have it.
trap '' HUP INT TERM PIPE
folder=$1

signal() {
  pids=$(find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "$folder*" 2>/dev/null | cut -d/ -f3)
  [ -n "$pids" ] && { kill "-$1" $pids 2>/dev/null || true; }
}

# What a process started while it was looked for is found the second time: what is stopped starts no more.
stop() {
  signal STOP
  signal STOP
}

end() {
  stop
  while signal KILL; do sleep 0.01; done
  # PostgreSQL's lock: the file, and the shared memory that its seventh line names.
  lock=$folder/data/postmaster.pid
  [ -e "$lock" ] || return 0
  sed -n 7p "$lock" | { read -r _ memory && ipcrm --shmem-id "$memory" 2>/dev/null; }
  rm -f "$lock"
}

while read -r word; do
  case $word in
    STOP) stop ;;
    KILL) end ;;
    *) signal "$word" ;;
  esac
  echo
done
end
umount --lazy "$folder" 2>/dev/null
rm -rf "$folder"
