# Unpacks the files of the project that lead a Python to its code, unless they are there, and becomes the command.
# Arguments: name of the files, the files as a compressed tar in base64, command.
folder=$HOME/.envforge
name=$1 files=$2
shift 2
if [ "$(readlink "$folder/project" 2>/dev/null)" != "$name" ]; then
    mkdir -p -m 700 "$folder" && new=$(mktemp -d "$folder/new.XXXXXX") &&
        printf %s "$files" | base64 -d | tar -xzf - -C "$new" --no-same-owner &&
        { mv -T "$new" "$folder/$name" 2>/dev/null || rm -rf "$new"; } &&
        ln -s "$name" "$folder/link.$$" && mv -T "$folder/link.$$" "$folder/project" ||
        echo "envforge: cannot write to $folder: the code of the project cannot be imported" >&2
    for other in "$folder"/project-*; do
        [ "$other" = "$folder/$name" ] || rm -rf "$other"
    done
    for program in "$folder"/project/bin/*; do
        found=$(command -v "${program##*/}") && [ -e "$program" ] && [ "$found" != "$program" ] &&
            echo "envforge: script \`${program##*/}\` of the project is hidden by $found" >&2
    done
fi
case ":$PATH:" in
*":$folder/project/bin:"*) ;;
*) PATH=$PATH:$folder/project/bin ;;
esac
case ":${PYTHONPATH:-}:" in
*":$folder/project:"*) ;;
*) PYTHONPATH=$folder/project${PYTHONPATH:+:$PYTHONPATH} ;;
esac
export PATH PYTHONPATH
exec "$@"
