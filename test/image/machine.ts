/**
 * Runs containers of the image's files without a container runtime: namespaces of Linux (mounts, network, processes), a read-only
 * root, the user of the image without capabilities, and what a runtime mounts: /proc, a few devices, /etc/hosts, volumes.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ImageConfig } from './dockerfile.ts'
import { IS_ROOT } from './namespaces.ts'

/** An empty folder, or the files of a Secret or ConfigMap. */
export interface Mount {
  readonly path: string
  readonly options: string
  readonly files?: Readonly<Record<string, string>>
  /** Of the files. */
  readonly mode?: number
}

export interface ContainerSpec {
  readonly name: string
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly mounts: readonly Mount[]
  readonly isReadOnly: boolean
  readonly hosts: Readonly<Record<string, string>>
  readonly network: Network
  readonly stdin?: string | undefined
}

/** The network of a pod: one address, and a route to the machine. */
export interface Network {
  readonly address: string
  /** The process that holds it. */
  readonly pid: number
}

export interface Container {
  /** Standard output and standard error. */
  log(): string
  isRunning(): boolean
  /** Runs a command in it, as `kubectl exec` and `docker exec` do. */
  exec(command: readonly string[], stdin?: string): Promise<Finished>
  stop(): Promise<Finished>
  ended(): Promise<Finished>
}

export interface Finished {
  readonly exitCode: number | null
  readonly output: string
}

export interface Machine {
  createNetwork(): Promise<Network>
  start(spec: ContainerSpec): Promise<Container>
  close(): Promise<void>
}

/** The machine's own address, which pods reach, and one that proxies use. */
export const MACHINE = '10.96.0.1'
export const INGRESS_CONTROLLER = '10.42.255.1'

const DEVICES = ['null', 'zero', 'full', 'random', 'urandom']

/** Mounts, and replaces itself by the command. Takes the root, its options, and pairs of target and options of mounts. */
const MOUNT = `
root=$1; access=$2; count=$3; shift 3
mount --bind "$root" "$root"
for device in ${DEVICES.join(' ')}; do mount --bind /dev/$device "$root/dev/$device"; done
while test "$count" -gt 0; do
  case $2 in
    tmpfs,*) mount -t tmpfs -o "\${2#tmpfs,}" tmpfs "$root$1" ;;
    *) mount --bind "$2" "$root$1"; mount -o remount,bind,ro "$root$1" ;;
  esac
  shift 2; count=$((count - 1))
done
test "$access" = rw || mount -o remount,bind,ro "$root"
exec "$@"
`

export function openMachine(image: string, config: ImageConfig, folder: string): Machine {
  const processes: ChildProcess[] = []
  let created = 0
  // PostgreSQL wants to know its user, who is the image's.
  if (!IS_ROOT) execFileSync('mount', ['--bind', join(image, 'etc/passwd'), '/etc/passwd'])
  ip('link', 'set', 'lo', 'up')
  addAddress(MACHINE)
  addAddress(INGRESS_CONTROLLER)

  function track(child: ChildProcess): ChildProcess {
    processes.push(child)
    return child
  }

  async function createNetwork(): Promise<Network> {
    created += 1
    const [address, link] = [`10.42.0.${created}`, `pod${created}`]
    const script =
      'echo up; read -r _; ip link set lo up; ip link set eth0 up; ip addr add $1/32 dev eth0; ip route add $2 dev eth0; ip route add default via $2; echo up; exec cat >/dev/null'
    const holder = track(
      spawn('unshare', ['--net', 'sh', '-euc', script, 'sh', address, MACHINE], {
        stdio: ['pipe', 'pipe', 'inherit'],
      }),
    )
    const { pid } = holder
    if (pid === undefined || holder.stdout === null) throw new Error('Cannot make a network namespace')
    await once(holder.stdout, 'data')
    ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid))
    ip('link', 'set', link, 'up')
    ip('route', 'add', address, 'dev', link)
    holder.stdin?.write('\n')
    await once(holder.stdout, 'data')
    return { address, pid }
  }

  async function start(spec: ContainerSpec): Promise<Container> {
    created += 1
    const root = join(folder, `${spec.name}-${created}`)
    execFileSync('cp', ['-al', image, root])
    const mounts = prepare(root, spec)
    const environment = listVariables({ ...config.env, HOSTNAME: spec.name, ...spec.env })
    const command = [...config.entrypoint, ...(spec.args ?? config.command)]
    const child = track(
      spawn(
        'nsenter',
        [
          `--net=/proc/${spec.network.pid}/ns/net`,
          ...['unshare', '--mount', 'sh', '-euc', MOUNT, 'sh', root, spec.isReadOnly ? 'ro' : 'rw'],
          ...[String(mounts.length / 2), ...mounts],
          ...['/usr/bin/env', '-i', ...environment, ...NO_NEW_PRIVILEGES],
          ...[UNSHARE, '--pid', '--fork', '--kill-child', '--mount', '--propagation=unchanged'],
          ...[`--root=${root}`, `--wd=${config.workingFolder}`, '--mount-proc=/proc', ...becomeUser(config)],
          ...command,
        ],
        { stdio: ['pipe', 'pipe', 'pipe'] },
      ),
    )
    child.stdin?.end(spec.stdin)
    const output = collect(child)
    const isRunning = () => child.exitCode === null && child.signalCode === null
    const findInit = () => waitForInit(child, isRunning, output.text)
    return {
      log: output.text,
      isRunning,
      ended: output.finished,
      async exec(words, stdin = '') {
        const pid = await findInit()
        const enter = spawn(
          '/usr/bin/env',
          [
            ...['-i', ...environment, NSENTER, `--target=${pid}`, ...enterUser(config)],
            ...['--net', '--pid', '--mount', `--root`, `--wd`, ...words],
          ],
          { stdio: ['pipe', 'pipe', 'pipe'] },
        )
        enter.stdin?.end(stdin)
        return collect(track(enter)).finished()
      },
      async stop() {
        if (isRunning()) process.kill(await findInit(), 'SIGTERM')
        return output.finished()
      },
    }
  }

  /** Makes what is mounted, and the places for it. Returns pairs of target and source. */
  function prepare(root: string, { mounts, hosts, name }: ContainerSpec): readonly string[] {
    for (const path of ['dev', 'proc', ...config.ownFolders]) mkdirSync(join(root, path), { recursive: true })
    for (const path of config.ownFolders) own(join(root, path))
    for (const device of DEVICES) writeFileSync(join(root, 'dev', device), '')
    const hostsFile = `${root}.hosts`
    const lines = Object.entries({ localhost: '127.0.0.1', ...hosts }).map(([host, at]) => `${at} ${host}\n`)
    writeFileSync(hostsFile, lines.join(''))
    writeFileSync(join(root, 'etc/hosts'), '')
    const volumes = mounts.flatMap(({ path, options, files, mode = 0o644 }, at) => {
      mkdirSync(join(root, path), { recursive: true })
      if (files === undefined) return [path, options]
      const source = join(folder, `${name}-${created}-volume-${at}`)
      for (const [file, text] of Object.entries(files)) writeVolumeFile(join(source, file), text, mode)
      return [path, source]
    })
    return ['/etc/hosts', hostsFile, ...volumes]
  }

  function own(path: string): void {
    if (IS_ROOT) chownSync(path, config.uid, config.gid)
  }

  /** As Kubernetes does: the files belong to root, and to the group of the pod (`fsGroup`). */
  function writeVolumeFile(path: string, text: string, mode: number): void {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    if (IS_ROOT) chownSync(path, 0, config.gid)
    chmodSync(path, mode)
  }

  return {
    createNetwork,
    start,
    async close() {
      for (const child of processes.reverse()) child.kill('SIGKILL')
      await Promise.all(processes.map(child => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
    },
  }
}

const [UNSHARE = '', NSENTER = '', SETPRIV = ''] = ['unshare', 'nsenter', 'setpriv'].map(findCommand)
const NO_NEW_PRIVILEGES = [SETPRIV, '--no-new-privs']

function findCommand(name: string): string {
  return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
}

function becomeUser({ uid, gid }: ImageConfig): readonly string[] {
  return IS_ROOT
    ? [`--setgid=${gid}`, `--setuid=${uid}`]
    : // Another user namespace, in which the user has no capabilities.
      ['--user', `--map-user=${uid}`, `--map-group=${gid}`]
}

function enterUser({ uid, gid }: ImageConfig): readonly string[] {
  return IS_ROOT ? [`--setgid=${gid}`, `--setuid=${uid}`] : ['--user', '--preserve-credentials']
}

function listVariables(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Gives the machine a further address, such as that of a Service. */
export function addAddress(address: string): void {
  ip('addr', 'add', `${address}/32`, 'dev', 'lo')
}

/** The first process of the container, which `unshare --fork` starts. */
async function waitForInit(
  child: ChildProcess,
  isRunning: () => boolean,
  log: () => string,
): Promise<number> {
  while (isRunning()) {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
    if (/^\d+$/.test(children)) return Number(children)
    await pause(20)
  }
  throw new Error(`The container has ended:\n${log()}`)
}

function collect(child: ChildProcess) {
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
  const closed = once(child, 'close')
  return {
    text: () => text,
    async finished(): Promise<Finished> {
      const [exitCode] = await closed
      return { exitCode, output: text }
    },
  }
}
