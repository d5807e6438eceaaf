import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))

/** The package with the Node of this machine, which `npm ci` installed in the clone. */
const NODE_PACKAGE =
  Object.keys(packages[''].optionalDependencies).find(name => existsSync(join(ROOT, 'node_modules', name))) ??
  ''

/** The Node of the machine, if it is one that only the launcher and the libraries run on. */
export const olderNode: string | undefined = (process.env.PATH ?? '')
  .split(delimiter)
  .map(folder => join(folder, process.platform === 'win32' ? 'node.exe' : 'node'))
  .find(
    path =>
      existsSync(path) && /^v2[0-5]\./.test(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout),
  )

/** The variable with the folder in which `npm run test:package` has packed and installed, for the tests that it runs. */
const MADE = process.env.TEST_PACKAGES

/** The folder of the packages: that of this run, or the given one. */
export function chooseFolder(own: string): string {
  return MADE ?? own
}

/** The tarballs of both packages. */
export interface Packed {
  readonly sallyport: string
  readonly 'sallyport-interceptor': string
}

const LOG = 'build.txt'

/** Builds and packs, unless that is done. */
export function packAll(folder: string): Packed {
  const dist = join(folder, 'dist')
  if (!existsSync(join(folder, LOG))) {
    const printed = execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), dist], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for (const name of ['sallyport', 'sallyport-interceptor'])
      execFileSync('npm', ['pack', join(dist, name), '--pack-destination', folder], {
        cwd: folder,
        stdio: 'ignore',
      })
    writeFileSync(join(folder, LOG), printed)
  }
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const name = (part: keyof Packed) => join(folder, `${part}-${version}.tgz`)
  return { sallyport: name('sallyport'), 'sallyport-interceptor': name('sallyport-interceptor') }
}

/** What the build printed. */
export function readBuildLog(folder: string): string {
  return readFileSync(join(folder, LOG), 'utf8')
}

export interface Installed {
  /** The words before the arguments of a command. */
  readonly program: readonly string[]
  /** The command itself, which gets its environment from whoever starts it. */
  readonly command: string
  /** The package. */
  readonly root: string
  /** The user's cache. */
  readonly cache: string
}

/** The folders with the Node of the user and the tools of the system. */
export const USER_PATH = [dirname(olderNode ?? process.execPath), '/usr/bin', '/bin'].join(delimiter)

/** How this machine reaches a registry, beside npm's own settings. */
const NETWORK = /^(node_extra_ca_certs|ssl_cert_(file|dir)|(https?|no)_proxy)$/i

/** npm's own settings of this machine. What `npm ci` has downloaded is not downloaded again. */
export function readNpmVariables(): Readonly<Record<string, string>> {
  const ask = (name: string) =>
    execFileSync('npm', ['config', 'get', name], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: [0, 'pipe', 'ignore'],
    })
  const settings = ['cache', 'userconfig', 'globalconfig'].map(name => [
    `npm_config_${name}`,
    ask(name).trim(),
  ])
  const network = Object.entries(process.env).filter(([name]) => NETWORK.test(name))
  return Object.fromEntries([...settings, ...network])
}

/** `npm install -g` into an empty folder, with an empty home, by the older Node if there is one, unless that is done. */
export function installPackage(folder: string, { sallyport }: Packed): Installed {
  const home = join(folder, 'home')
  const prefix = join(folder, 'prefix')
  const cache = join(home, '.cache')
  if (!existsSync(prefix)) {
    // A second user may run what the first one installed.
    chmodSync(folder, 0o755)
    mkdirSync(home)
    execFileSync(
      'npm',
      ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', sallyport],
      {
        cwd: folder,
        env: { PATH: USER_PATH, HOME: home, ...readNpmVariables() },
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
    placeNode(cache)
  }
  const command = join(prefix, 'bin/sallyport')
  return {
    program: ['/usr/bin/env', '-u', 'NODE_COMPILE_CACHE', `PATH=${USER_PATH}`, `HOME=${home}`, command],
    command,
    root: join(prefix, 'lib/node_modules/sallyport'),
    cache,
  }
}

/** What the launcher does at its first use, with the Node of the clone. */
function placeNode(cache: string): void {
  const { version } = packages[`node_modules/${NODE_PACKAGE}`]
  const target = join(cache, 'sallyport', `${NODE_PACKAGE}-${version}`, 'node_modules', NODE_PACKAGE)
  cpSync(join(ROOT, 'node_modules', NODE_PACKAGE), target, { recursive: true })
}
