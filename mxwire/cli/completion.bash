%(complete_func)s() {
    local IFS=$'\n' response completion type value files=
    response=$(COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
        %(complete_var)s=bash_complete $1 2>/dev/null)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == dir ]]; then
            compopt -o dirnames
        elif [[ $type == file ]]; then
            files=1
        else
            COMPREPLY+=("$value")
            [[ $value == */ ]] && compopt -o nospace
        fi
    done
    if [[ $files && ${#COMPREPLY[@]} -gt 0 ]]; then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$2")
    elif [[ $files ]]; then
        compopt -o default
    fi
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
