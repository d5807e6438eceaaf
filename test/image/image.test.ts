import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { listNeededFiles } from '../../scripts/package/needed-files.ts'
import { type Bom, listInstalled, listLocked } from '../../scripts/release/bill.ts'
import { makeCertificate } from '../support/certificate.ts'
import { freePorts } from '../support/free-ports.ts'
import { HttpUser } from '../support/http-user.ts'
import { listValuesFiles } from './chart.ts'
import { copyBuildContext, readBuildCommand, readDockerfile } from './dockerfile.ts'
import { enterNamespaces, findObstacle } from './namespaces.ts'
import { findRuntime } from './runtime.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const config = readDockerfile()
const hasDebian = spawnSync('dpkg-query', ['--version']).status === 0
const unbuilt = hasDebian ? undefined : 'the image, whose libraries are those of Debian packages'
const obstacle = unbuilt ?? findObstacle(config.uid)
if (obstacle)
  process.stderr.write(`NOT TRIED: the image as compose.yaml and the chart start it: ${obstacle}\n`)
const runtime = findRuntime()
if (!runtime) process.stderr.write('NOT TRIED: the image in a container runtime (docker, podman, nerdctl)\n')
process.stderr.write('NOT TRIED: the chart in a cluster (kind, k3s)\n')

const VALUES = listValuesFiles()
/** An image to try instead of one that is made here, such as that of `npm run image`. */
const IMAGE = process.env.TEST_IMAGE
const MAX_MB = 250
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

  it('has every file that the program reads or starts', () => {
    assert.deepEqual(
      listNeededFiles().filter(path => !existsSync(join(program, path))),
      [],
    )
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

  // Each has namespaces of its own, and waits for its servers half of the time.
  describe('in namespaces', { concurrency: 2, skip: obstacle }, () => {
    for (const name of ['compose', ...VALUES.map(values => values.name)])
      it(`launches an app as ${name === 'compose' ? 'compose.yaml starts it' : `the chart starts it with the values ${name}`}`, async () => {
        const place = mkdtempSync(join(folder, 'scenario-'))
        const { cert, key } = makeCertificate(Date.now(), HOSTS)
        writeFileSync(join(place, 'ca.pem'), cert)
        writeFileSync(join(place, 'key.pem'), key)
        const { status, output } = await runScenario(name, root, place)
        assert.equal(status, 0, output)
      })
  })

  describe('in a container runtime', { skip: runtime === undefined && 'there is none' }, () => {
    assert(runtime)
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    let image: string
    let isUnusable: string | undefined
    before(() => {
      image = IMAGE ?? runtime.build(folder, version)
      isUnusable = runtime.findObstacle(image)
      if (isUnusable !== undefined)
        process.stderr.write(`NOT TRIED: the image in ${runtime.name}, which starts nothing: ${isUnusable}\n`)
    })
    after(() => {
      if (IMAGE === undefined) runtime.remove(image)
    })

    it(`is smaller than ${MAX_MB} MB, and says what it is`, () => {
      const { Size, Config } = runtime.inspect(image)
      assert(Size < MAX_MB * 1_000_000, `${Size / 1e6} MB`)
      assert.equal(Config.User, `${config.uid}:${config.gid}`)
      assert.deepEqual(Config.Entrypoint, config.entrypoint)
      assert.equal(Config.Labels['org.opencontainers.image.version'], version)
    })

    it('has no shell', t => {
      if (isUnusable !== undefined) return t.skip(isUnusable)
      const { status, stderr } = runtime.run(image, ['/bin/sh', '-c', 'true'])
      assert.notEqual(status, 0)
      assert.match(stderr, /no such file or directory|not found/)
    })

    it('launches an app with a read-only file system and without capabilities, and stops at SIGTERM', async t => {
      if (isUnusable !== undefined) return t.skip(isUnusable)
      const [auth = 0, fhir = 0, app = 0] = await freePorts(3)
      const settings = { issuerUrl: `http://localhost:${auth}`, appUrl: `http://localhost:${app}` }
      const container = runtime.start(image, {
        SMART_ISSUER_URL: settings.issuerUrl,
        SMART_FHIR_BASE_URL: `http://localhost:${fhir}/fhir`,
        SMART_APP_URL: settings.appUrl,
        SMART_SAMPLE_PATIENTS: '2',
      })
      t.after(() => container.remove())
      await container.ready(settings.issuerUrl)
      const account = { username: 'clinician', password: 'sallyport', name: '' }
      const user = new HttpUser({ settings, user: account })
      await user.signIn()
      await user.launch('patient-1')
      assert.equal((await user.api('summary')).status, 200)
      const health = container.exec('sallyport', 'health', '--ready')
      assert.equal(health.status, 0, health.stdout + health.stderr)
      assert.equal(await container.stop(), 0)
    })
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
