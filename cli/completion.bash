# SPDX-License-Identifier: Apache-2.0
# bash completion for wattmeter. wattmeter-doc puts the table _wattmeter_rows in front, made
# from the tables of the commands, with a row for each command, verb and option:
#
#     run command runs        info command            experiment verb list
#     run --append flag       run --interval value    run --record file
#     run --gpu words all visible none

# Completes somebody else's command line when the cursor is in it: it begins with the first
# word from $1 on that is neither an option nor the value of one in $2.
_wattmeter_command_at() {
    local i=$1
    while ((i < COMP_CWORD)); do
        case ${COMP_WORDS[i]} in
        --) ((i += 1)) && break ;;
        -*) [[ $2 == *" ${COMP_WORDS[i]} "* ]] && ((i += 1)) ;;
        *) break ;;
        esac
        ((i += 1))
    done
    ((i > COMP_CWORD)) && return 1
    if ((i == COMP_CWORD)); then
        [[ $cur == -* && ${COMP_WORDS[i - 1]} != -- ]] && return 1
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$i"
    fi
}

_wattmeter() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command name kind rest words= commands= verbs= options= values=' ' is= list= runs=
    while read -r command name kind rest; do
        [[ $name == command ]] && commands+="$command "
        [[ $command == "${COMP_WORDS[1]}" ]] || continue
        case $name in
        command) runs=$kind ;;
        verb) verbs+="$kind " ;;
        *)
            options+="$name "
            [[ $kind == flag ]] || values+="$name "
            [[ $name == "$prev" ]] && is=$kind list=$rest
            ;;
        esac
    done <<<"$_wattmeter_rows"

    if ((COMP_CWORD == 1)); then
        compopt +o default
        words="${commands}help --help --version"
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        compopt +o default
        ((COMP_CWORD == 2)) && words=$commands
    elif [[ $runs == runs ]] && _wattmeter_command_at 2 "$values"; then
        return
    elif [[ $is == words ]]; then
        words=$list
    elif [[ $is == file ]]; then
        return
    elif [[ $is == value ]]; then
        compopt +o default
        return
    elif [[ $cur == -* ]]; then
        words=$options
    elif ((COMP_CWORD == 2)); then
        words=$verbs
    fi
    [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _wattmeter wattmeter
