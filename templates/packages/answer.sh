# Sourced by the scripts that resolve.
# answer NAME FILE: the file as one line of JSON on standard output, `{"answer":"NAME","text":"…"}`.
answer() {
    printf '{"answer":"%s","text":"' "$1"
    sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g; s/\r/\\r/g; s/$/\\n/' "$2" | tr -d '\n'
    printf '"}\n'
}
