/**
 * `npm run image [-- <folder>]`: builds the container image `localhost/sallyport:<version>` with Buildah. With a folder, also
 * writes it there as an archive, with its bill of materials. The build starts from the image that the Dockerfile names, or
 * from `BUILD_IMAGE`; `BUILD_IMAGE=mmdebstrap` makes one from Debian's packages, where no image can be pulled. Inside another
 * container, Buildah and Podman may need `STORAGE_DRIVER=vfs`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const BASE = 'localhost/sallyport-build'

/** How npm reaches its registry from this machine, for the build: file here, where the build finds it, and the variable that says so. */
const NPM_FILES: readonly (readonly [file: string, target: string, variable: string])[] = [
  [join(homedir(), '.npmrc'), '/etc/sallyport-npmrc', 'NPM_CONFIG_USERCONFIG'],
  [process.env.NODE_EXTRA_CA_CERTS ?? '', '/etc/ssl/extra.pem', 'NODE_EXTRA_CA_CERTS'],
]
const npmFiles = NPM_FILES.filter(([file]) => existsSync(file))
const npmVariables = npmFiles.map(([, target, variable]) => `${variable}=${target}`)

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const image = `localhost/sallyport:${version}`
build()
const [, , folder] = process.argv
if (folder !== undefined) save(resolve(folder))

function build(): void {
  const revision = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout.trim()
  run('buildah', [
    'bud',
    '--format=docker',
    '--isolation=chroot',
    '--network=host',
    ...npmFiles.map(([file, target]) => `--volume=${file}:${target}:ro`),
    ...npmVariables.map(variable => `--build-arg=${variable}`),
    ...chooseBase(process.env.BUILD_IMAGE),
    `--build-arg=VERSION=${version}`,
    `--build-arg=REVISION=${revision}`,
    `--tag=${image}`,
    '.',
  ])
}

function chooseBase(wanted: string | undefined): readonly string[] {
  if (wanted === undefined) return []
  if (wanted !== 'mmdebstrap') return [`--build-arg=BUILD_IMAGE=${wanted}`]
  makeBase()
  return [`--build-arg=BUILD_IMAGE=${BASE}`]
}

/** Debian with Node and npm. Debian's own npm is too old for the lock file. `npm run` has set a prefix of this machine. */
function makeBase(): void {
  const made = mkdtempSync(join(tmpdir(), 'sallyport-base-'))
  try {
    const archive = join(made, 'base.tar')
    run('mmdebstrap', [
      '--variant=minbase',
      '--include=nodejs,npm,libatomic1,ca-certificates',
      ...npmFiles.map(([file, target]) => `--customize-hook=upload ${file} ${target}`),
      `--customize-hook=chroot "$1" env ${npmVariables.join(' ')} npm install --global --prefix /usr/local npm@10`,
      'bookworm',
      archive,
    ])
    run('podman', ['import', archive, BASE])
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

function save(into: string): void {
  mkdirSync(into, { recursive: true })
  run('podman', [
    'save',
    '--format',
    'oci-archive',
    '--output',
    join(into, `sallyport-${version}.oci.tar`),
    image,
  ])
  const container = capture('buildah', ['from', image]).trim()
  try {
    const root = capture('buildah', ['mount', container]).trim()
    const bill = readFileSync(join(root, 'opt/sallyport/image.cdx.json'))
    writeFileSync(join(into, 'image.cdx.json'), bill)
  } finally {
    run('buildah', ['rm', container])
  }
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? `exit code ${status}`}`)
}

function capture(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
  return stdout
}
