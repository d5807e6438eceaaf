import { spawnSync } from 'node:child_process'

export const IS_ROOT = process.getuid?.() === 0

/**
 * Enters namespaces of mounts, network and processes: as root, or in a user namespace that makes another user the image's. All
 * processes end with the first one.
 */
export function enterNamespaces(uid: number): readonly string[] {
  const namespaces = [
    ...['unshare', '--mount', '--propagation=private', '--net'],
    ...['--pid', '--fork', '--kill-child', '--mount-proc'],
  ]
  return IS_ROOT
    ? namespaces
    : [...namespaces, '--user', `--map-user=${uid}`, `--map-group=${uid}`, '--keep-caps']
}

/** Why containers cannot be run on this machine. */
export function findObstacle(uid: number): string | undefined {
  if (process.platform !== 'linux') return 'the image is for Linux'
  const [command = '', ...args] = enterNamespaces(uid)
  const script =
    'ip link add pod0 type veth peer name pod1 && mount -t tmpfs tmpfs /mnt && command -v setpriv nsenter'
  const { status, error, stderr } = spawnSync(command, [...args, 'sh', '-c', script], { encoding: 'utf8' })
  return status === 0 ? undefined : `namespaces: ${error?.message ?? stderr.trim()}`
}
