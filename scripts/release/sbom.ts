/**
 * `node scripts/release/sbom.ts [--interceptor | --image <folder>]`: prints the software bill of materials (CycloneDX) of the npm
 * package: the packages of the lock file. With `--interceptor`, that of `sallyport-interceptor`, which has none. With `--image`, that of a container image whose files are in the folder: without the packages
 * that contain Node, with Node itself and with the Debian packages of its shared libraries.
 */
import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../..')

interface Component {
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
}

interface Bom {
  metadata: { component: Component }
  components: Component[]
  dependencies?: unknown
}

const { image, interceptor } = parseArgs({
  options: { image: { type: 'string' }, interceptor: { type: 'boolean' } },
}).values
const bom = describePackages()
process.stdout.write(`${JSON.stringify(choose(), undefined, 2)}\n`)

function choose(): Bom {
  if (interceptor) return describeInterceptor(bom)
  return image === undefined ? bom : describeImage(bom, image)
}

function describePackages(): Bom {
  const args = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--package-lock-only']
  const bom: Bom = JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' }))
  // npm takes the name of the folder.
  bom.metadata.component = { ...bom.metadata.component, name: 'sallyport', type: 'application' }
  return bom
}

function describeInterceptor({ dependencies: _, ...bom }: Bom): Bom {
  const { component } = bom.metadata
  const name = 'sallyport-interceptor'
  const own = {
    'bom-ref': `${name}@${component.version}`,
    purl: `pkg:npm/${name}@${component.version}`,
    description: 'SMART on FHIR access control for FHIR R4 servers on Express, Fastify or Node',
  }
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...component, ...own, name, type: 'library' } },
    components: [],
  }
}

function describeImage({ dependencies: _, ...bom }: Bom, folder: string): Bom {
  const node = process.versions.node
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...bom.metadata.component, type: 'container' } },
    components: [
      ...bom.components.filter(({ name }) => !/^node-(bin-)?(linux|darwin|win)-/.test(name)),
      { type: 'platform', name: 'node', version: node, purl: `pkg:generic/node@${node}` },
      ...listLibraries(folder),
    ],
  }
}

/** The Debian packages of the shared libraries in the image. */
function listLibraries(folder: string): readonly Component[] {
  const files = globSync('{lib,lib64,usr/lib}/**/*.so*', { cwd: folder }).map(path => join('/', path))
  const owners = execFileSync('dpkg-query', ['--search', ...files.map(resolveLink)], { encoding: 'utf8' })
  const names = new Set(owners.split('\n').flatMap(line => /^([^:\s]+)(?::\S+)?: /.exec(line)?.[1] ?? []))
  return [...names].map(name => {
    const [, version = ''] = execFileSync('dpkg-query', ['--show', name], { encoding: 'utf8' })
      .trim()
      .split('\t')
    return { type: 'library', name, version, purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}` }
  })
}

/** dpkg knows the file, and not each link to it or to its folder. */
function resolveLink(path: string): string {
  return `*/${path.split('/').at(-1)}`
}
