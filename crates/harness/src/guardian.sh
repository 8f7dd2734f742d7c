# Guards the folder $1 of a test process, which holds the other end of the input. When that process ends, however it
# ends, the processes that work in the folder are killed and its files removed. A line of input is a signal for these
# processes; a line of output confirms that all have received it.
trap '' HUP INT TERM PIPE
folder=$1

signal() {
  pids=$(find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "$folder*" 2>/dev/null | cut -d/ -f3)
  [ -n "$pids" ] && { kill "-$1" $pids 2>/dev/null || true; }
}

# Twice: the second search finds processes that were started during the first. A stopped process starts no more.
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

while read -r signal_name; do
  case $signal_name in
    STOP) stop ;;
    KILL) end ;;
    *) signal "$signal_name" ;;
  esac
  echo
done
end
umount --lazy "$folder" 2>/dev/null
rm -rf "$folder"
