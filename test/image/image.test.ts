import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Bom, listInstalled, listLocked } from '../../scripts/release/bill.ts'
import { makeCertificate } from '../support/certificate.ts'
import { listValuesFiles } from './chart.ts'
import { copyBuildContext, readBuildCommand, readDockerfile } from './dockerfile.ts'
import { enterNamespaces, findObstacle } from './namespaces.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const config = readDockerfile()
const hasDebian = spawnSync('dpkg-query', ['--version']).status === 0
const unbuilt = hasDebian ? undefined : 'the image, whose libraries are those of Debian packages'
const obstacle = unbuilt ?? findObstacle(config.uid)
if (obstacle)
  process.stderr.write(`NOT TRIED: the image as compose.yaml and the chart start it: ${obstacle}\n`)
process.stderr.write('NOT TRIED: the image in a container runtime or a cluster (npm run test:image)\n')

const VALUES = listValuesFiles()
/** Not the folder for temporary files of a test run: that may be in memory, and is for its user only. */
const FOLDER = '/var/tmp'

describe('the container image', { skip: unbuilt }, () => {
  const folder = mkdtempSync(join(FOLDER, 'sallyport-image-'))
  const root = join(folder, 'image')
  const program = join(root, 'opt/sallyport')
  after(() => rmSync(folder, { recursive: true, force: true }))
  before(() => {
    const context = join(folder, 'context')
    copyBuildContext(context)
    // As the Dockerfile does, with the files that the build of an image gets.
    const command = readBuildCommand().replace(/ \/image$/, ` ${root}`)
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', command], { cwd: context, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  })

  it('has a bill of materials of exactly what is installed', () => {
    const { components, metadata }: Bom = JSON.parse(readFileSync(join(program, 'image.cdx.json'), 'utf8'))
    assert.equal(metadata.component.type, 'container')
    const named = (pattern: RegExp) => components.filter(({ purl }) => pattern.test(purl)).map(it => it.purl)
    const packages = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: program }).map(path => {
      const { name, version } = JSON.parse(readFileSync(join(program, path), 'utf8'))
      return `pkg:npm/${name.replace('@', '%40')}@${version}`
    })
    assert.deepEqual(named(/^pkg:npm/).toSorted(), [...new Set(packages)].toSorted())
    assert(
      packages.some(purl => purl.startsWith('pkg:npm/yaml@')),
      'a direct dependency',
    )
    const { node } = process.versions
    assert.deepEqual(named(/^pkg:generic/), [`pkg:generic/node@${node}`])
    const libraries = named(/^pkg:deb/).map(purl => purl.replace(/^pkg:deb\/debian\/([^@]+)@.*$/, '$1'))
    assert.deepEqual(libraries.toSorted(), ['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'])
  })

  it('has the packages that npm ci --omit=dev installs', () => {
    const locked = Object.keys(listLocked()).filter(path => existsSync(join(ROOT, path)))
    assert.deepEqual(Object.keys(listInstalled(program)).toSorted(), locked.toSorted())
  })

  it('has a licence text of every component, and of those that a text refers to', () => {
    const { components }: Bom = JSON.parse(readFileSync(join(program, 'image.cdx.json'), 'utf8'))
    const licences = join(root, 'usr/share/licenses')
    for (const component of components) {
      const texts = readdirSync(join(licences, component['bom-ref']))
      const longest = Math.max(
        ...texts.map(text => readFileSync(join(licences, component['bom-ref'], text)).length),
      )
      assert(longest > 400, component.name)
    }
    const glibc = components.find(({ name }) => name === 'libc6')?.['bom-ref'] ?? ''
    assert(existsSync(join(licences, glibc, 'LGPL-2.1')))
    assert.match(readFileSync(join(licences, 'sallyport/LICENSE'), 'utf8'), /Apache License/)
  })

  it('has neither a shell nor a package manager', () => {
    assert.deepEqual(readdirSync(join(root, 'usr/bin')).toSorted(), ['node', 'sallyport'])
    for (const path of ['bin', 'sbin', 'usr/sbin', 'usr/local']) assert(!existsSync(join(root, path)), path)
  })

  for (const name of ['compose', ...VALUES.map(values => values.name)])
    it(`launches an app as ${name === 'compose' ? 'compose.yaml starts it' : `the chart starts it with the values ${name}`}`, {
      skip: obstacle,
    }, async () => {
      const place = mkdtempSync(join(folder, 'scenario-'))
      const { cert, key } = makeCertificate(Date.now(), HOSTS)
      writeFileSync(join(place, 'ca.pem'), cert)
      writeFileSync(join(place, 'key.pem'), key)
      const { status, output } = await runScenario(name, root, place)
      assert.equal(status, 0, output)
    })
})

/** The hosts of public URLs in values files. */
const HOSTS = [
  'ehr.example',
  'auth.ehr.example',
  'fhir.ehr.example',
  'app.ehr.example',
  'fhir.internal.example',
  'idp.ehr.example',
  'hapi.fhir.svc',
]

async function runScenario(name: string, image: string, place: string) {
  const [command = '', ...args] = enterNamespaces(config.uid)
  const scenario = join(import.meta.dirname, 'scenario.ts')
  const child = spawn(command, [...args, process.execPath, scenario, name, image, place], {
    env: { ...process.env, TMPDIR: FOLDER, NODE_EXTRA_CA_CERTS: join(place, 'ca.pem') },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      output += text
    })
  const status = await new Promise(closed => child.on('close', closed))
  return { status, output }
}
