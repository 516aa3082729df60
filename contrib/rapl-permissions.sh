#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets the members of one group read the energy counters of the CPU (RAPL), which
# are for root since 2020: who reads them often and closely can learn what other
# programs compute (CVE-2020-8694, "Platypus"). So nothing here is ever made
# readable by everybody. See docs/cpu-energy.md.
set -eu

usage() {
    cat <<'EOF'
usage: rapl-permissions.sh [options]
       rapl-permissions.sh [options] --binary /path/to/wattmeter

Without --binary: the counters in /sys/class/powercap become readable by the group,
now and, by a udev rule, after each start. With it: this one program may open perf
events of the whole machine (CAP_PERFMON), and only root and the group may run it.

  --group NAME   the group, made where it is missing; wattmeter unless given
  --user NAME    adds a user to the group; may be given several times
  --undo         puts it back: counters for root alone, no rule, no capability.
                 The group and its members stay
  --dry-run      prints the commands and does nothing
  --root DIR     the sys and etc in DIR, as of an image; nothing outside DIR is
                 touched, and the group must be there already
EOF
}

fail() {
    echo "rapl-permissions.sh: $*" >&2
    exit 1
}

misuse() {
    echo "rapl-permissions.sh: $*" >&2
    usage >&2
    exit 2
}

# Names go into a udev rule and a shell's command line.
check_name() {
    case $1 in
    -* | *[!a-zA-Z0-9._-]*) misuse "'$1' is no name of a user or group" ;;
    esac
}

group=wattmeter users='' binary='' root='' undo=no dry=no
while [ $# -gt 0 ]; do
    case $1 in
    --group | --user | --binary | --root)
        [ $# -ge 2 ] && [ -n "$2" ] || misuse "$1 needs a value"
        case $1 in
        --group) check_name "$2" && group=$2 ;;
        --user) check_name "$2" && users="$users $2" ;;
        --binary) binary=$2 ;;
        --root) root=${2%/} ;;
        esac
        shift
        ;;
    --undo) undo=yes ;;
    --dry-run) dry=yes ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) misuse "'$1' is no option" ;;
    esac
    shift
done

# Groups that everybody is in are the same as everybody.
case $group in
users | nogroup | nobody) misuse "group '$group' is everybody" ;;
esac
[ "$undo" = no ] || [ -z "$users" ] || misuse "--undo leaves the group's members alone"
[ -z "$root" ] || [ -d "$root/sys" ] || fail "there is no $root/sys"
[ -z "$root" ] || [ -z "$users$binary" ] || misuse "--root is for the counters alone"
[ "$dry" = yes ] || [ -n "$root" ] || [ "$(id -u)" -eq 0 ] ||
    fail "must be run as root (--dry-run shows what it would do)"

rule=$root/etc/udev/rules.d/70-wattmeter-rapl.rules
mark='# Made by rapl-permissions.sh of wattmeter.'

run() {
    if [ "$dry" = yes ]; then
        echo "$*"
    else
        "$@"
    fi
}

has_group() {
    getent group "$group" >/dev/null
}

make_group() {
    if ! has_group; then
        [ -z "$root" ] || fail "there is no group '$group'"
        run groupadd --system "$group"
    fi
    for user in $users; do
        getent passwd "$user" >/dev/null || fail "there is no user '$user'"
        run usermod -aG "$group" "$user"
    done
}

# The real files: what is in /sys/class/powercap are links to these folders.
counters() {
    find "$root/sys/devices/virtual/powercap" -name energy_uj -type f 2>/dev/null | sort
}

# First for nobody but root, so that no moment of the change opens it to others.
set_counters() {
    counters | while IFS= read -r file; do
        run chmod 0400 "$file"
        run chgrp "$1" "$file"
        run chmod "$2" "$file"
    done
}

write_rule() {
    if [ -e "$rule" ] && ! grep -qxF "$mark" "$rule"; then
        fail "$rule is there and not ours"
    fi
    text="$mark
ACTION==\"add\", SUBSYSTEM==\"powercap\", TEST==\"energy_uj\", \
RUN+=\"/bin/sh -c 'chgrp $group /sys%p/energy_uj && chmod 0440 /sys%p/energy_uj'\""
    if [ "$dry" = yes ]; then
        printf 'cat > %s <<EOF\n%s\nEOF\n' "$rule" "$text"
        return
    fi
    mkdir -p "${rule%/*}"
    printf '%s\n' "$text" >"$rule"
    chmod 0644 "$rule"
}

remove_rule() {
    [ -e "$rule" ] || return 0
    grep -qxF "$mark" "$rule" || fail "$rule is not ours"
    run rm "$rule"
}

reload_rules() {
    [ -z "$root" ] || return 0
    command -v udevadm >/dev/null || return 0
    run udevadm control --reload
}

# What may be changed by others must not be given a right.
check_binary() {
    case $binary in
    /*) ;;
    *) fail "$binary: give the whole path" ;;
    esac
    [ -f "$binary" ] && [ ! -L "$binary" ] && [ -x "$binary" ] ||
        fail "$binary: no program, or a link to one"
    [ "$(head -c 4 "$binary" | od -An -tx1 | tr -d ' ')" = 7f454c46 ] ||
        fail "$binary: a script, whose interpreter would need the capability"
    [ "${binary##*/}" = wattmeter ] || fail "$binary: not called wattmeter"
    [ "$(stat -c %u "$binary")" = 0 ] || fail "$binary: does not belong to root"
    [ -z "$(find "$binary" -perm /022)" ] || fail "$binary: others may write to it"
    command -v setcap >/dev/null || fail "there is no setcap (apt install libcap2-bin)"
}

# chgrp and chmod drop capabilities, so they come first.
grant_binary() {
    run chgrp "$group" "$binary"
    run chmod 0750 "$binary"
    run setcap cap_perfmon+ep "$binary"
}

revoke_binary() {
    run setcap -r "$binary"
    run chgrp root "$binary"
    run chmod 0755 "$binary"
}

if [ -n "$binary" ]; then
    check_binary
    if [ "$undo" = yes ]; then
        revoke_binary
    else
        make_group
        grant_binary
    fi
elif [ "$undo" = yes ]; then
    remove_rule
    reload_rules
    set_counters "$([ -n "$root" ] && id -g || echo root)" 0400
else
    [ -n "$(counters)" ] ||
        fail "there is no counter in $root/sys/devices/virtual/powercap (modprobe intel_rapl_msr)"
    make_group
    write_rule
    reload_rules
    set_counters "$group" 0440
fi
