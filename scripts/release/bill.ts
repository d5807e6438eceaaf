/** Bills of materials in the format CycloneDX, made from what is installed, or from the lock file for what npm would install. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

export interface Component {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly description?: string
  /** `expression` is one of SPDX, such as `MIT`. */
  readonly licenses: readonly { readonly expression: string }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

export interface Bom {
  readonly bomFormat: 'CycloneDX'
  readonly specVersion: string
  readonly version: number
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** A manifest of npm, or an entry of a lock file. */
interface Manifest {
  readonly name?: string
  readonly version: string
  readonly license: string
  readonly description?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** The packages of npm by their folders, such as `node_modules/pg/node_modules/split2`. */
export type Packages = Readonly<Record<string, Manifest>>

const LOCK: { readonly packages: Packages } = readJson(join(ROOT, 'package-lock.json'))
const MANIFEST: Manifest = readJson(join(ROOT, 'package.json'))

/** The packages that npm installs with the package: those of the lock file that it needs, without the Nodes of the clone. */
export function listLocked(): Packages {
  const nodes = Object.keys(MANIFEST.optionalDependencies ?? {}).map(name => `node_modules/${name}`)
  return Object.fromEntries(
    Object.entries(LOCK.packages).filter(([path, { dev }]) => path !== '' && !dev && !nodes.includes(path)),
  )
}

/** The packages that a folder has below its `node_modules`. */
export function listInstalled(folder: string): Packages {
  const manifests = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: folder }).sort()
  return Object.fromEntries(
    manifests.map(path => {
      const manifest: Manifest = readJson(join(folder, path))
      const integrity = LOCK.packages[dirname(path)]?.integrity
      return [dirname(path), integrity === undefined ? manifest : { ...manifest, integrity }]
    }),
  )
}

interface Described {
  readonly type: 'application' | 'container' | 'library'
  readonly name: string
  readonly description?: string
  readonly packages: Packages
  /** What did not come from npm. */
  readonly others?: readonly Component[]
}

export function describeBill({ type, name, description, packages, others = [] }: Described): Bom {
  const about = description ?? MANIFEST.description
  const own = { ...describePackage(name, MANIFEST), type, ...(about !== undefined && { description: about }) }
  const found = new Map(
    Object.entries(packages).map(([path, it]) => [path, describePackage(nameOf(path, it), it)]),
  )
  const needs = (path: string, manifest: Manifest) => ({
    ref: path === '' ? own['bom-ref'] : (found.get(path)?.['bom-ref'] ?? ''),
    dependsOn: listNeeds(manifest).flatMap(needed => {
      const at = findInstalled(needed, path, packages)
      return found.get(at ?? '')?.['bom-ref'] ?? []
    }),
  })
  const direct = Object.keys(packages).length === 0 ? {} : MANIFEST.dependencies
  const root = needs('', { version: own.version, license: '', ...(direct && { dependencies: direct }) })
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: own },
    components: removeRepeated([...found.values(), ...others]),
    dependencies: [
      { ...root, dependsOn: [...root.dependsOn, ...others.map(other => other['bom-ref'])] },
      ...Object.entries(packages).map(([path, manifest]) => needs(path, manifest)),
    ],
  }
}

/** A package that is installed in two folders is one component. */
function removeRepeated(components: readonly Component[]): readonly Component[] {
  return [...new Map(components.map(component => [component['bom-ref'], component])).values()]
}

function describePackage(name: string, { version, license, integrity }: Manifest): Component {
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    licenses: [{ expression: license }],
    ...(integrity !== undefined && { hashes: [describeHash(integrity)] }),
  }
}

function describeHash(integrity: string) {
  const [, bits = '', hash = ''] = /^sha(\d+)-(.*)$/.exec(integrity) ?? []
  return { alg: `SHA-${bits}`, content: Buffer.from(hash, 'base64').toString('hex') }
}

/** A lock file has a name only where it differs from the folder's. */
function nameOf(path: string, { name }: Manifest): string {
  return name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

function listNeeds({ dependencies, optionalDependencies }: Manifest): readonly string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies })
}

/** Where Node finds a package: in the nearest `node_modules` above. */
function findInstalled(name: string, from: string, packages: Packages): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = join(folder, 'node_modules', name)
    if (path in packages) return path
    if (folder === '') return undefined
  }
}

function readJson(path: string) {
  return JSON.parse(readFileSync(path, 'utf8'))
}
