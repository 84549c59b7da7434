# function.sh FOLDER NAME=VALUE... COMMAND...: an environment of a function, in its own namespaces. It sees Debian's /usr and
# /etc, a Python (PREFIXES), its code (TASK), its layers (OPT, the first covers the others) and a /tmp of its own, and runs as nobody.
set -eu
folder=$1; shift
for group in ${CGROUPS//:/ }; do echo 0 > "$group/cgroup.procs"; done
root=$folder/root
mount -t tmpfs -o mode=755 root "$root"
show() { mkdir -p "$root$2"; mount --bind "$1" "$root$2"; mount -o remount,bind,ro "$root$2"; }
show /usr /usr; show /etc /etc; show "$TASK" /var/task
for each in ${PREFIXES//:/ }; do show "$each" "$each"; done
for each in bin sbin lib lib64; do ln -s usr/$each "$root/$each"; done
mkdir -p "$root"/{opt,tmp,proc,dev,var/runtime}
case $OPT in
  *:*) mount -t overlay -o "lowerdir=$OPT" overlay "$root/opt" ;;
  ?*) show "$OPT" /opt ;;
esac
mount --bind "$folder/tmp" "$root/tmp"
mount -t proc proc "$root/proc"
for each in null zero full random urandom; do touch "$root/dev/$each"; mount --bind /dev/$each "$root/dev/$each"; done
ln -s /proc/self/fd "$root/dev/fd"
touch "$root/var/runtime/bootstrap.py"; mount --bind "$BOOTSTRAP" "$root/var/runtime/bootstrap.py"
touch "$folder/began"
exec env -i /usr/sbin/chroot --userspec=65534:65534 --groups= "$root" /usr/bin/env --chdir=/var/task "$@"
