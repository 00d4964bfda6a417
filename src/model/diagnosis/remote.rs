//! Ports and names of containers, and programs that reach them: SSH, VS Code, Jupyter.

use super::entry::KnownError;

pub(super) const ENTRIES: &[KnownError] = &[
    KnownError {
        id: "container-port-taken",
        texts: &[
            &["Bind for {address} failed: port is already allocated"],
            &["failed to bind host port for {address}: address already in use"],
            &["failed to bind host port", "address already in use"],
            &["Error starting userland proxy", "address already in use"],
            &["Ports are not available:", "bind:"],
            &["port is already allocated"],
        ],
        what: "a port of the host is already published: {address|see the text}",
        why: "another container (also one that was left running) or a program of the host listens on it",
        cures: &[
            "publish another port of the host: `docker run -p 8889:8888 ...`, `envforge shell --port 8889:8888` (`--jupyter` takes a free one by itself)",
            "see what has it and end that: `docker ps --filter publish=PORT`, `envforge ps`, `ss -ltnp`",
        ],
        source: "https://docs.docker.com/engine/network/port-publishing/",
    },
    KnownError {
        id: "container-name-taken",
        texts: &[
            &["container name '/{name}' is already in use by"],
            &["container name '{name}' is already in use"],
            &["You have to remove (or rename) that container to be able to reuse that name"],
        ],
        what: "a container of this name exists: {name|see the text}",
        why: "it was started before, runs or has ended, and was not removed (no `--rm`)",
        cures: &[
            "go on in it (`docker start -ai {name|NAME}`), or remove it (`docker rm {name|NAME}`, `-f` if it runs: what is only in it is lost) and start it again; `envforge shell` joins its running container by itself",
        ],
        source: "https://docs.docker.com/reference/cli/docker/container/run/",
    },
    KnownError {
        id: "ssh-refused",
        texts: &[
            &["ssh: connect to host {host} port {port#}: Connection refused"],
            &["ssh: connect to host {host} port {port#}: Connection timed out"],
            &["ssh: connect to host {host} port {port#}: No route to host"],
            &["kex_exchange_identification: Connection closed by remote host"],
        ],
        what: "no SSH server answers at {host|the address}",
        why: "the container or its server does not run (any longer), the port is another one since the last start, or the port is reachable from its own machine only",
        cures: &[
            "check that the container runs (`envforge ps`), and start its server again: `envforge shell --ssh` prints the command that connects, with the present port",
            "reach a container on another machine through that machine, because its port listens on 127.0.0.1 there: `ssh -J USER@MACHINE -p PORT USER@127.0.0.1`",
        ],
        source: "https://man.openbsd.org/ssh",
    },
    KnownError {
        id: "ssh-host-key",
        texts: &[
            &["REMOTE HOST IDENTIFICATION HAS CHANGED"],
            &["Host key verification failed"],
            &["Host key for * has changed and you have requested strict checking"],
        ],
        what: "the host key of the SSH server is not the one that this machine knows",
        why: "another container, or one that was built again, answers at this address and port with a key of its own, or the key was never accepted (image builds, jobs); if neither is so another machine may answer instead",
        cures: &[
            "remove the old key and connect again: `ssh-keygen -R \"[127.0.0.1]:PORT\"` with address and port of the text; `envforge shell --ssh --ssh-config` gives a project one name and one key, whatever its port",
            "in a build add the key of the host first: `ssh-keyscan github.com >> ~/.ssh/known_hosts`",
        ],
        source: "https://man.openbsd.org/ssh-keygen",
    },
    KnownError {
        id: "ssh-key-refused",
        texts: &[&["Permission denied (publickey"]],
        what: "the SSH server accepts none of the keys",
        why: "it takes keys alone, and the client offers none that is authorized: another user name, a key that is not in the agent, or one that the server was not given",
        cures: &[
            "see what is offered (`ssh-add -l`, `ssh -v`), and give the server the key: `envforge shell --ssh --authorized-keys ~/.ssh/id_ed25519.pub` prints the command with the right user",
            "for git add the key to the account, pass the agent to the container (`envforge shell --ssh-agent`), or use https",
        ],
        source: "https://man.openbsd.org/sshd",
    },
    KnownError {
        id: "vscode-server-glibc",
        texts: &[
            &["may not meet VS Code Server's prerequisites for glibc and libstdc++"],
            &["does not meet the prerequisites for running VS Code Server"],
            &["does not meet Visual Studio Code Server's prerequisites"],
            &["Missing GLIBC >= {needed#}"],
            &["Missing GLIBCXX >= {needed#}"],
        ],
        what: "VS Code's server needs a newer C library than this system has",
        why: "since release 1.86 it needs glibc 2.28 and libstdc++ 3.4.25, which Ubuntu 18.04, CentOS 7 and older bases lack",
        cures: &[
            "use a newer base (`--base debian:13`, `--base ubuntu:24.04`) and open the container instead of the old host: `envforge shell --vscode`",
        ],
        source: "https://code.visualstudio.com/docs/remote/faq",
    },
    KnownError {
        id: "vscode-server-permission",
        texts: &[
            &["EACCES: permission denied, * '*.vscode-server"],
            &["EACCES: permission denied '*.vscode-server"],
            &["[Errno 13] Permission denied: '*.vscode-server"],
            &["mkdir: cannot create directory '*.vscode-server", "Permission denied"],
            &[".vscode-server/*: Permission denied"],
        ],
        what: "VS Code cannot write its server into the home directory",
        why: "the home or `~/.vscode-server` belongs to another user (root made it in an earlier session), is read-only, or its disk does not allow programs (`noexec`)",
        cures: &[
            "see `ls -ld ~ ~/.vscode-server`, and give it to the user: `sudo chown -R $USER ~/.vscode-server` (or delete it); `envforge shell --vscode` has a home of its own for each project",
            "set `remote.SSH.serverInstallPath` to a directory that the user may write",
        ],
        source: "https://code.visualstudio.com/docs/remote/troubleshooting",
    },
    KnownError {
        id: "vscode-server-download",
        texts: &[
            &["Failed to download VS Code Server"],
            &["Couldn't install vscode server on remote server"],
            &["Error downloading server from all URLs"],
        ],
        what: "VS Code cannot download its server",
        why: "the machine or container does not reach update.code.visualstudio.com (no network, a proxy), or has neither curl nor wget",
        cures: &[
            "set `\"remote.SSH.localServerDownload\": \"always\"`, so that VS Code copies it over the connection, or set HTTPS_PROXY on the remote side",
        ],
        source: "https://code.visualstudio.com/docs/remote/troubleshooting",
    },
    KnownError {
        id: "jupyter-root",
        texts: &[&["Running as root is not recommended. Use --allow-root to bypass"]],
        what: "Jupyter refuses to run as root",
        why: "the container's user is root, and a notebook can run any program",
        cures: &[
            "start it as a user: `envforge shell --jupyter` does, with a token and a free port; elsewhere `docker run --user $(id -u):$(id -g)`, or in a container of your own `jupyter lab --allow-root`",
        ],
        source: "https://jupyter-server.readthedocs.io/en/latest/operators/security.html",
    },
];
