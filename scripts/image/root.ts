/**
 * `node scripts/image/root.ts <folder>`: makes the root file system of the container image (Dockerfile), on a Debian, without a
 * container runtime: Node in the version of the lock file, the libraries that it links to, the built servers with their packages,
 * the command `sallyport`, licence texts, and a bill of materials of all that.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { type Component, describeBill, listInstalled, listLocked } from '../release/bill.ts'
import { copyDebianLicences, copyFiles, copyPackageLicences } from './licences.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const USER = 10001
/** Of the libraries that Node links to: all but glibc's are GCC's. */
const GLIBC_LICENCE = 'LGPL-2.1-or-later'
const GCC_LICENCE = 'GPL-3.0-or-later WITH GCC-exception-3.1'

/** The image has no shell, and `env` neither. */
const COMMAND = `#!/usr/bin/node --max-semi-space-size=8
import '/opt/sallyport/src/cli/main.js'
`

const [, , target] = process.argv
if (target === undefined) throw new Error('Name the folder to make')
const root = resolve(target)
const program = join(root, 'opt/sallyport')
const licences = join(root, 'usr/share/licenses')

rmSync(root, { recursive: true, force: true })
execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), join(root, 'opt'), '--image'], {
  stdio: 'inherit',
})
copyPackages()
const libraries = copyNode()
writeFile('usr/bin/sallyport', COMMAND, 0o755)
writeFile('etc/passwd', `sallyport:x:${USER}:${USER}::/var/lib/sallyport:/sbin/nologin\n`, 0o644)
writeFile('etc/group', `sallyport:x:${USER}:\n`, 0o644)
mkdirSync(join(root, 'tmp'))
chmodSync(join(root, 'tmp'), 0o1777)
writeBill()

/** What `npm ci --omit=dev` installs, without the packages that contain a Node. Those for other platforms are not installed. */
function copyPackages(): void {
  for (const path of Object.keys(listLocked()))
    if (existsSync(join(ROOT, path)))
      cpSync(join(ROOT, path), join(program, path), { recursive: true, filter: isOwnFile(path) })
}

/** A package below another one is listed itself. */
function isOwnFile(path: string): (source: string) => boolean {
  const nested = join(ROOT, path, 'node_modules')
  return source => source !== nested
}

/** Copies Node and the libraries that it links to. Returns the libraries' Debian packages. */
function copyNode(): readonly Component[] {
  copyFiles([process.execPath], join(root, 'usr/bin'))
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  for (const path of linked) copyFiles([path], join(root, dirname(path)))
  return findDebianPackages(linked)
}

function findDebianPackages(files: readonly string[]): readonly Component[] {
  const query = (...args: readonly string[]) => execFileSync('dpkg-query', args, { encoding: 'utf8' })
  // dpkg knows a file by one of its paths: /lib is a link to /usr/lib.
  const patterns = files.map(path => `*/${basename(path)}`)
  const known = new Set(files.flatMap(path => [path, join('/usr', path), realpathSync(path)]))
  const owners = query('--search', ...patterns)
    .split('\n')
    .flatMap(line => {
      const [, owner = '', path = ''] = /^([^:\s]+)(?::\S+)?: (.*)$/.exec(line) ?? []
      return known.has(path) ? owner : []
    })
  return [...new Set(owners)].sort().map(name => {
    const [, version = ''] = query('--show', name).trim().split('\t')
    return {
      'bom-ref': `${name}@${version}`,
      type: 'library',
      name,
      version,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}`,
      licenses: [{ expression: name === 'libc6' ? GLIBC_LICENCE : GCC_LICENCE }],
    }
  })
}

function writeFile(path: string, text: string, mode: number): void {
  mkdirSync(join(root, dirname(path)), { recursive: true })
  writeFileSync(join(root, path), text)
  chmodSync(join(root, path), mode)
}

function writeBill(): void {
  const installed = listInstalled(program)
  const node = process.versions.node
  const nodePackage = resolve(realpathSync(process.execPath), '../..')
  copyFiles([join(ROOT, 'LICENSE'), join(ROOT, 'NOTICE')], join(licences, 'sallyport'))
  copyFiles([join(nodePackage, 'LICENSE')], join(licences, `node@${node}`))
  copyPackageLicences(installed, program, licences)
  for (const { name, version } of libraries) copyDebianLicences(name, version, licences)
  const bill = describeBill({
    type: 'container',
    name: 'sallyport',
    packages: installed,
    others: [
      {
        'bom-ref': `node@${node}`,
        type: 'platform',
        name: 'node',
        version: node,
        purl: `pkg:generic/node@${node}`,
        licenses: [{ expression: 'MIT' }],
      },
      ...libraries,
    ],
  })
  writeFile('opt/sallyport/image.cdx.json', `${JSON.stringify(bill, undefined, 2)}\n`, 0o644)
}
