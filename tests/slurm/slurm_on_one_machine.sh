#!/usr/bin/env bash
# A real SLURM of three nodes with one core each on the loopback of this machine. Debian's packages are unpacked beside the
# system and nothing is installed, so it needs no root: 10 MB of lists and 7 MB of packages, once.
#   slurm_on_one_machine.sh unpack             exits with 3 where the packages cannot be had, as does `start` where they are
#                                              of another SLURM than Debian 12's, 22.05, and do not start
#   slurm_on_one_machine.sh start DIR PORT     takes PORT to PORT + 3, and prints a line for `eval` in a shell that uses sbatch
#   slurm_on_one_machine.sh kill DIR N         ends the daemon of node N, as a lost network does: what runs there goes on;
#                                              0 is the controller
#   slurm_on_one_machine.sh revive DIR N       starts it again
#   slurm_on_one_machine.sh stop DIR           ends the daemons, and what runs on the nodes
# As in many small clusters there is no accounting: what became of a job is read from the files that it wrote.
set -euo pipefail
action=${1:?unpack, start, kill, revive or stop}
packages=${SLURM_PACKAGES:-${XDG_CACHE_HOME:-$HOME/.cache}/jaxarc-tests/slurm}
root=$packages/root
libraries=$root/usr/lib/$(uname -m)-linux-gnu

unpack() {
    [ -x "$root/usr/bin/sbatch" ] && return
    local names deb
    mkdir -p "$packages"
    new=$(mktemp -d "$packages/new.XXXXXX")
    trap 'rm -rf "$new"' EXIT # new is not local: the function has returned by then
    mkdir -p "$new"/{lists,archives}/partial "$new/root"
    # Lists and archives of our own, as those of the system are root's.
    local apt=(apt-get -qq -o "Dir::State::Lists=$new/lists" -o "Dir::Cache=$new" -o Acquire::Retries=2 -o APT::Sandbox::User=)
    # "Inst munge (0.5 Debian ...)": what SLURM needs and the system lacks.
    { command -v apt-get dpkg >&2 && "${apt[@]}" update &&
        names=$("${apt[@]}" install -s --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins |
            awk '$1 == "Inst" {print $2}') &&
        (cd "$new/archives" && "${apt[@]}" download $names); } >&2 || return 3
    for deb in "$new"/archives/*.deb; do dpkg -x "$deb" "$new/root"; done
    mv -T "$new/root" "$root" 2>/dev/null || [ -x "$root/usr/bin/sbatch" ] # which another process did meanwhile
}

environment() {
    echo "export SLURM_CONF=$dir/slurm.conf LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm PATH=$root/usr/bin:\$PATH"
}

write_conf() { # port
    mkdir -p "$dir"/{state,log,spool/node1,spool/node2,spool/node3}
    cat >"$dir/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$1
AuthType=auth/none
AuthInfo=cred_expire=15
CredType=cred/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
PluginDir=$libraries/slurm-wlm
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdTimeout=20
KillWait=5
MinJobAge=600
NodeName=node[1-3] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$(($1 + 1))-$(($1 + 3))] CPUs=1 RealMemory=2000
PartitionName=cpu Nodes=node[1-3] Default=YES MaxTime=60 State=UP
CONF
}

daemon() { # name, command...
    local name=$1
    shift
    setsid "$@" >"$dir/log/$name.out" 2>&1 &
    echo $! >"$dir/$name.started"
}

start_node() {
    if [ "$1" = 0 ]; then
        daemon node0 "$root"/usr/sbin/slurmctld-wlm -D
    else
        daemon "node$1" "$root"/usr/sbin/slurmd-wlm -D -N "node$1" -d "$root/usr/sbin/slurmstepd-wlm"
    fi
}

stop() { # what runs our programs, and what they run as jobs, by the cluster in its environment
    local process
    for process in /proc/[0-9]*; do
        grep -qzxF "SLURM_CONF=$dir/slurm.conf" "$process/environ" 2>/dev/null || continue
        if [[ $(readlink "$process/exe") == "$root"/* ]] || grep -qz ^SLURM_JOB_ID= "$process/environ" 2>/dev/null; then
            kill -9 "${process#/proc/}" 2>/dev/null || true
        fi
    done
}

if [ "$action" = unpack ]; then
    unpack
    exit
fi
dir=$(mkdir -p "${2:?a folder}" && cd "$2" && pwd)
eval "$(environment)"
case $action in
start)
    unpack
    write_conf "${3:?a port}"
    for n in 0 1 2 3; do start_node $n; done
    for _ in $(seq 60); do [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 3 ] && break; sleep 0.5; done
    sinfo >&2 || true
    if [ "$(sinfo -h -t idle -o %D)" != 3 ]; then
        echo "$(sinfo --version) does not start; see $dir/log" >&2
        stop
        [[ $(sinfo --version) == *" 22.05"* ]] && exit 1 || exit 3
    fi
    environment ;;
kill) kill -9 "$(cat "$dir/node${3:?a number}.started")" ;;
revive) start_node "${3:?a number}" ;;
stop) stop ;;
*)
    echo "unpack, start, kill, revive or stop" >&2
    exit 2 ;;
esac
