import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { HttpUser } from '../test/support/http-user.ts'
import { IS_SHORT } from '../test/support/thorough.ts'
import { chooseFolder, olderNode, packAll, readBuildLog } from './package/install.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..')
const MAX_BYTES = 3_000_000
const MAX_LIBRARY_BYTES = 500_000

const NODES = [process.execPath, ...(olderNode === undefined ? [] : [olderNode])]
/** Those that servers are started by. */
const STARTERS = IS_SHORT ? NODES.slice(-1) : NODES
if (olderNode === undefined)
  process.stderr.write('NOT TRIED: the package on Node 20, which is not on the PATH\n')

const LOCK = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
/** The package with the Node of this machine. */
const NODE_PACKAGE =
  Object.keys(LOCK.packages[''].optionalDependencies).find(name =>
    existsSync(join(ROOT, 'node_modules', name)),
  ) ?? ''

/** FHIR servers of somebody else, in plain JavaScript, that have the library below their node_modules. */
const HOSTS = {
  http: `
    import { createServer } from 'node:http'
    import { expressInterceptor } from 'sallyport/interceptor'
    const guard = expressInterceptor(options)
    const server = createServer((request, response) => guard(request, response, () => response.end('let through')))
    server.listen(0, '127.0.0.1', () => ask(server.address().port))`,
  express: `
    import express from 'express'
    import { expressInterceptor } from 'sallyport/interceptor'
    const app = express()
    const interceptor = expressInterceptor(options)
    app.use(express.json(), interceptor, interceptor.handleError)
    const server = app.listen(0, '127.0.0.1', () => ask(server.address().port))`,
  fastify: `
    import fastify from 'fastify'
    import { fastifyInterceptor } from 'sallyport/interceptor'
    const app = fastify()
    await app.register(fastifyInterceptor(options))
    app.get('/fhir/Patient', async () => 'let through')
    app.post('/fhir/Patient', async () => 'let through')
    await app.listen({ port: 0, host: '127.0.0.1' })
    await ask(app.server.address().port)`,
} as const

/** Asks a host without a token, then with one and a body that is not JSON. */
const ASK = `
  import { generateKeyPairSync, sign } from 'node:crypto'
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }
  const issuer = 'https://issuer.example'
  const fhirBaseUrl = 'http://127.0.0.1:1/fhir'
  const options = {
    fhirBaseUrl,
    contexts: ['system'],
    trustedIssuers: [{ issuer, jwksUrl: issuer + '/jwks' }],
    smartConfiguration: 'host',
    fetch: async () => Response.json({ keys: [jwk] }),
  }
  const encode = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const iat = Math.floor(Date.now() / 1000)
  const claims = { iss: issuer, aud: fhirBaseUrl, sub: 'a', client_id: 'a', jti: 'a', iat, exp: iat + 60, scope: 'system/*.cruds' }
  const signed = encode({ alg: 'ES256', typ: 'at+jwt', kid: 'one' }) + '.' + encode(claims)
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const authorization = 'Bearer ' + signed + '.' + signature.toString('base64url')
  async function ask(port) {
    const print = async init => {
      const answer = await fetch('http://127.0.0.1:' + port + '/fhir/Patient', init)
      const text = await answer.text()
      console.log(answer.status, text.startsWith('{') ? JSON.parse(text).issue[0].code : text)
    }
    await print()
    await print({ method: 'POST', headers: { authorization, 'content-type': 'application/json' }, body: '{' })
    process.exit()
  }`

/** Node itself reads no body. */
const ANSWERS = {
  http: '401 login\n200 let through\n',
  express: '401 login\n400 structure\n',
  fastify: '401 login\n400 structure\n',
}

/** How the documentation reads the scope of a decision. */
const [, DOCUMENTED_SCOPE] =
  /`(typeof decision\.by[^`]*)`/.exec(readFileSync(join(ROOT, 'docs', 'interceptor.md'), 'utf8')) ?? []

const CONSUMER = `
  import { createTrailSender, expressInterceptor, fastifyInterceptor, getAuthorization } from 'sallyport/interceptor'
  import type { AuditRecord, Grant, HostOptions } from 'sallyport/interceptor'
  const server = { authUrl: 'https://auth.example', fhirBaseUrl: 'https://fhir.example/fhir' }
  const trail = createTrailSender({ ...server, clientId: 'a', credential: { secret: 'b' }, onError: console.error })
  const onDecision = ({ allowed, reason }: AuditRecord) => console.log(allowed, reason)
  const options: HostOptions = { ...server, contexts: ['patient', 'user'], trail, onDecision }
  export const middleware = expressInterceptor(options)
  export const plugin = fastifyInterceptor(options)
  export const find = (request: object): Grant | undefined => getAuthorization(request)?.grant
  export const findScope = (request: object): string | undefined => {
    const { decision } = getAuthorization(request) ?? {}
    return decision && (${DOCUMENTED_SCOPE})
  }
`

/** What passes the compiler only if the frameworks accept the library. */
const FRAMEWORKS = `
  import express from 'express'
  import fastify from 'fastify'
  import { middleware, plugin } from './alone.ts'
  express().use('/fhir', middleware, middleware.handleError)
  await fastify().register(plugin)
  await fastify({ logger: true }).withTypeProvider().register(async app => { await app.register(plugin) })
`

function nameNode(node: string): string {
  return node === olderNode ? 'an older Node' : 'Node 26'
}

const TESTING = `
  import { type Connection, connectSallyport, type Sallyport, type StartOptions, startSallyport } from 'sallyport/testing'
  const options: StartOptions = { settings: { SMART_SAMPLE_PATIENTS: '2' }, servers: ['auth', 'fhir'] }
  const sallyport: Sallyport = await startSallyport(options)
  await sallyport.addApp({ id: 'a', redirectUris: ['http://localhost/'], scope: 'patient/*.rs' })
  export const token: string = await sallyport.token({ patient: '1' })
  export const link: string = await sallyport.launch({ patient: '1', simulate: 'fhir:500' })
  // @ts-expect-error: no error of the lab
  await sallyport.launch({ simulate: 'zzz' })
  export const connected: Connection = connectSallyport(sallyport.env)
  export const username: string | undefined = sallyport.users.patient?.username
`

const TESTING_IN_COMMON_JS = `
  import { type Sallyport, startSallyport } from 'sallyport/testing'
  export const start = (): Promise<Sallyport> => startSallyport({ servers: ['auth', 'fhir'] })
  // @ts-expect-error: no server
  startSallyport({ servers: 5 })
`

/** The TypeScript that one of our packages brings: one of those that load no ES modules in CommonJS (before 5.8). */
const require = createRequire(import.meta.url)
const oldCompiler = createRequire(require.resolve('@arethetypeswrong/core')).resolve('typescript/bin/tsc')
const OLD_TSC = [process.execPath, oldCompiler]

describe('npm run build', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-build-'))
  const installed = join(folder, 'node_modules/sallyport')
  const launcher = join(installed, 'src/launcher/main.js')
  const cache = join(folder, 'cache')
  const library = join(folder, 'node_modules/sallyport-interceptor')
  let printed = ''
  const tarballs = { sallyport: '', 'sallyport-interceptor': '' }
  const NAMES = ['sallyport', 'sallyport-interceptor'] as const
  before(async () => {
    Object.assign(tarballs, packAll(chooseFolder(folder)))
    printed = readBuildLog(chooseFolder(folder))
    for (const name of NAMES) {
      // What npm install does, with packages that are already here.
      const target = join(folder, 'node_modules', name)
      mkdirSync(target, { recursive: true })
      await run('tar', ['-xf', tarballs[name], '--strip-components=1', '-C', target])
    }
    for (const name of Object.keys(readManifest(installed).dependencies ?? {})) link(name)
    for (const name of ['express', '@types/node', '@types/express']) link(name)
    // What the launcher does at its first use.
    const cached = join(
      cache,
      'sallyport',
      `${NODE_PACKAGE}-${LOCK.packages[''].optionalDependencies[NODE_PACKAGE]}`,
    )
    mkdirSync(cached, { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(cached, 'node_modules'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  function link(name: string): void {
    const path = join(folder, 'node_modules', name)
    mkdirSync(join(path, '..'), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), path)
  }

  it('says what it does (PACKAGE-1)', () => {
    assert.match(printed, /^Compiling the servers: .*\nCompiling .*\nCompiling .*\nDone: .+dist\n$/)
  })

  it(`makes a tarball of less than ${MAX_BYTES / 1e6} MB (PACKAGE-1)`, () => {
    const { size } = statSync(tarballs.sallyport)
    assert(size < MAX_BYTES, String(size))
  })

  it(`makes a library that npm installs as one package, of less than ${MAX_LIBRARY_BYTES / 1e3} kB (LIBRARY-7)`, async () => {
    const { size } = statSync(tarballs['sallyport-interceptor'])
    assert(size < MAX_LIBRARY_BYTES, String(size))
    const empty = mkdtempSync(join(folder, 'install-'))
    writeFileSync(join(empty, 'package.json'), '{}')
    await run('npm', ['install', '--offline', tarballs['sallyport-interceptor']], { cwd: empty })
    const { packages } = JSON.parse(readFileSync(join(empty, 'package-lock.json'), 'utf8'))
    assert.deepEqual(Object.keys(packages), ['', 'node_modules/sallyport-interceptor'])
    const program = "import('sallyport-interceptor').then(it => console.log(typeof it.expressInterceptor))"
    const { stdout } = await run(NODES.at(-1) ?? '', ['-e', program], { cwd: empty })
    assert.equal(stdout.trim(), 'function')
  })

  it('makes both packages of one version, for Node 20 (LIBRARY-7)', () => {
    const [servers, alone] = [readManifest(installed), readManifest(library)]
    for (const name of ['version', 'license', 'engines'] as const)
      assert.deepEqual(alone[name], servers[name])
    assert.deepEqual([alone.name, alone.engines], ['sallyport-interceptor', { node: '>=20' }])
    for (const name of ['dependencies', 'peerDependencies', 'optionalDependencies'])
      assert.equal(alone[name], undefined, name)
  })

  for (const name of NAMES)
    it(`makes a package ${name} that publint and attw accept (PACKAGE-2)`, async () => {
      const tarball = readFileSync(tarballs[name])
      const { messages, pkg } = await publint({
        pack: { tarball: Uint8Array.from(tarball).buffer },
        strict: true,
      })
      assert.deepEqual(
        messages.map(message => formatMessage(message, pkg)),
        [],
      )
      const { types, ...found } = await checkPackage(createPackageFromTarballData(tarball))
      assert(types)
      const problems = 'problems' in found ? found.problems : assert.fail('no result')
      const serious = problems.filter(it => !('resolutionKind' in it && it.resolutionKind === 'node10'))
      assert.deepEqual(serious, [])
    })

  for (const node of NODES)
    for (const name of ['http', 'express', 'fastify'] as const)
      it(`makes sallyport/interceptor, which guards a ${name} server on ${nameNode(node)} (LIBRARY-7)`, async () => {
        writeFileSync(join(folder, `${name}.mjs`), `${ASK}\n${HOSTS[name]}`)
        const { stdout } = await run(node, [`${name}.mjs`], { cwd: folder })
        assert.equal(stdout, ANSWERS[name])
      })

  interface Project {
    readonly module: string
    readonly moduleResolution: string
    readonly type?: 'module' | 'commonjs'
    /** The compiler, as the words before its arguments. */
    readonly tsc?: readonly string[]
    readonly files: Readonly<Record<string, string>>
  }

  async function checkTypes({ module, moduleResolution, type = 'module', tsc = ['tsc'], files }: Project) {
    const project = mkdtempSync(join(folder, 'types-'))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ type }))
    const compilerOptions = {
      module,
      moduleResolution,
      strict: true,
      noEmit: true,
      allowImportingTsExtensions: true,
      lib: ['es2023'],
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
    }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    const [compiler = '', ...before] = tsc
    const { stdout } = await run(compiler, [...before, '-p', project]).catch(error => error)
    assert.equal(stdout, '')
  }

  const ALONE = CONSUMER.replaceAll('sallyport/interceptor', 'sallyport-interceptor')
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const)
    it(`has types that TypeScript accepts with the resolution ${moduleResolution} (PACKAGE-2)`, () =>
      checkTypes({
        module,
        moduleResolution,
        files: {
          'index.ts': CONSUMER,
          'alone.ts': ALONE,
          'frameworks.ts': FRAMEWORKS,
          'testing.ts': TESTING,
        },
      }))

  for (const [name, tsc] of Object.entries({ 'before 5.8': OLD_TSC, 'of today': ['tsc'] }))
    for (const module of ['node16', 'nodenext'])
      it(`has types that TypeScript ${name} accepts in CommonJS, with ${module} (PACKAGE-2)`, () =>
        checkTypes({
          module,
          moduleResolution: module,
          type: 'commonjs',
          tsc,
          files: { 'index.ts': CONSUMER, 'alone.ts': ALONE, 'testing.ts': TESTING_IN_COMMON_JS },
        }))

  for (const node of NODES)
    it(`has libraries that CommonJS loads on ${nameNode(node)} (PACKAGE-2)`, async () => {
      const program = `const { getAuthorization } = require('sallyport-interceptor')
        console.log([require('sallyport/interceptor').expressInterceptor, require('sallyport/testing').startSallyport].map(it => typeof it).join())
        import('sallyport-interceptor').then(it => console.log(it.getAuthorization === getAuthorization))`
      const { stdout } = await run(node, ['-e', program], { cwd: folder })
      assert.equal(stdout, 'function,function\ntrue\n')
    })

  it('has types that name no framework, which the host may lack (PACKAGE-2)', () => {
    const declarations = globSync('**/*.d.ts', { cwd: library })
    assert(declarations.length > 50)
    const imported = declarations.flatMap(path =>
      [...readFileSync(join(library, path), 'utf8').matchAll(/(?:from|import\()\s*['"]([^.'"][^'"]*)/g)].map(
        ([, name = '']) => name,
      ),
    )
    assert.deepEqual(
      imported.filter(name => !name.startsWith('node:')),
      [],
    )
  })

  for (const node of STARTERS)
    it(`starts the servers in an empty folder by the launcher on ${nameNode(node)} (PACKAGE-3)`, async () => {
      const empty = mkdtempSync(join(folder, 'empty-'))
      const child = spawn(node, [launcher, 'start', '--ephemeral', '--ready'], {
        cwd: empty,
        env: { PATH: process.env.PATH, HOME: empty, XDG_CACHE_HOME: cache, SMART_SAMPLE_PATIENTS: '2' },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      try {
        const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
        const ready = JSON.parse(String(line).split('\n')[0] ?? '')
        const user = new HttpUser({
          settings: { issuerUrl: ready.auth, appUrl: ready.app },
          user: { username: 'clinician', password: 'sallyport', name: '' },
        })
        await user.signIn()
        await user.launch('patient-1')
        assert.equal((await user.api('summary')).status, 200)
      } finally {
        child.kill('SIGTERM')
      }
      const [exitCode] = await once(child, 'close')
      assert.equal(exitCode, 0)
    })

  for (const node of STARTERS)
    it(`tests an app as docs/tutorials/ci.md shows, on ${nameNode(node)} (PACKAGE-8)`, async () => {
      const page = readFileSync(join(ROOT, 'docs/tutorials/ci.md'), 'utf8')
      const [, block = ''] = /`ci\/requests\.test\.mjs`:\n```js\n(.*?)^```$/ms.exec(page) ?? []
      writeFileSync(join(folder, 'requests.test.mjs'), block)
      const { stdout } = await run(node, ['--test', 'requests.test.mjs'], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, XDG_CACHE_HOME: cache },
      })
      assert.match(stdout, /pass 2\n.*fail 0\n/s)
    })

  for (const node of STARTERS)
    it(`stops the servers if npx gets SIGTERM, on ${nameNode(node)} (PACKAGE-6)`, async () => {
      const bin = join(folder, 'node_modules/.bin')
      mkdirSync(bin, { recursive: true })
      const command = join(bin, 'sallyport')
      rmSync(command, { force: true })
      writeFileSync(command, `#!/bin/sh\nexec "${node}" "${launcher}" "$@"\n`, {
        mode: 0o755,
      })
      const npx = spawn('npx', ['sallyport', 'start', '--ephemeral', '--ready'], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, XDG_CACHE_HOME: cache, SMART_SAMPLE_PATIENTS: '2' },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let log = ''
      npx.stderr.setEncoding('utf8').on('data', text => {
        log += text
      })
      await once(npx.stdout, 'data')
      npx.kill('SIGTERM')
      // The servers hold the pipes open as long as they run.
      await once(npx, 'close')
      assert.match(log, /Stopped\.\n$/)
    })

  it('leaves the command node of a project alone that installs it (PACKAGE-7)', async t => {
    if (olderNode === undefined) return t.skip('there is no older Node here')
    const project = mkdtempSync(join(folder, 'project-'))
    writeFileSync(
      join(project, 'package.json'),
      '{ "private": true, "scripts": { "test": "node --version" } }',
    )
    const options = {
      cwd: project,
      env: { PATH: [dirname(olderNode), '/usr/bin', '/bin'].join(delimiter), HOME: process.env.HOME },
    }
    const npm = async (...args: readonly string[]) => (await run('npm', args, options)).stdout
    try {
      await npm(
        'install',
        '--ignore-scripts',
        '--prefer-offline',
        '--no-audit',
        '--fetch-retries=0',
        tarballs.sallyport,
      )
    } catch (error) {
      if (!/ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT/.test(String(error))) throw error
      process.stderr.write(
        'NOT TRIED: an installation of the package by npm, whose registry is out of reach\n',
      )
      return
    }
    assert.match(await npm('test', '--silent'), /^v2[0-5]\./)
    assert.match(await npm('exec', '--', 'node', '--version'), /^v2[0-5]\./)
    assert.match(await npm('exec', '--', 'sallyport', '--help'), /^Usage: sallyport /m)
  })

  it('lets npm install the Node that the servers need, once, by its checksum (PACKAGE-5)', async t => {
    if (olderNode === undefined) return t.skip('there is no older Node here')
    const place = mkdtempSync(join(folder, 'npm-'))
    // npm, without a registry: it notes what it was asked for.
    writeFileSync(
      join(place, 'npm'),
      `#!/bin/sh
      echo "$@" >> "${place}/calls"
      cp package-lock.json "${place}/lock.json"
      ln -s "${ROOT}/node_modules" node_modules\n`,
      { mode: 0o755 },
    )
    const env = { PATH: [place, '/usr/bin', '/bin'].join(delimiter), XDG_CACHE_HOME: join(place, 'cache') }
    const launch = () => run(NODES.at(-1) ?? '', [launcher, '--help'], { cwd: place, env })
    const [first, second] = [await launch(), await launch()]
    assert.match(first.stdout, /^Usage: sallyport /m)
    assert.match(first.stderr, /^Sallyport needs a newer Node: installing \S+@26\.\S+ in \S+, once\.\n$/)
    assert.deepEqual(second, { stdout: first.stdout, stderr: '' })
    const [cached = ''] = globSync(join(place, 'cache/sallyport/*'))
    assert.equal(statSync(cached).mode & 0o777, 0o755, 'a second user can read it')
    assert.match(readFileSync(join(place, 'calls'), 'utf8'), /^ci --ignore-scripts --no-bin-links [^\n]*\n$/)
    const { version, integrity } = LOCK.packages[`node_modules/${NODE_PACKAGE}`]
    assert.deepEqual(JSON.parse(readFileSync(join(place, 'lock.json'), 'utf8')).packages, {
      '': { private: true, dependencies: { [NODE_PACKAGE]: version } },
      [`node_modules/${NODE_PACKAGE}`]: { version, integrity },
    })
  })

  it('says how to run a command as users of the package do (PACKAGE-4)', async () => {
    for (const args of [['--help'], ['start', '--help'], ['client', 'add', '--help']]) {
      const { stdout } = await run(process.execPath, [launcher, ...args])
      assert.match(stdout, /^Usage: sallyport /m)
      assert.doesNotMatch(stdout, /npm run|npm start/)
    }
  })

  for (const name of NAMES)
    it(`gives ${name} documentation without a link to a file that it lacks (LIBRARY-7)`, () => {
      const target = join(folder, 'node_modules', name)
      const pages = globSync('**/*.md', { cwd: target })
      assert.ok(pages.includes('README.md'))
      assert.ok(pages.includes('docs/interceptor.md'))
      const broken = pages.flatMap(page =>
        [...readFileSync(join(target, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]*)/g)]
          .map(([, path = '']) => join(page, '..', path))
          .filter(path => !existsSync(join(target, path))),
      )
      assert.deepEqual(broken, [])
      assert.ok(existsSync(join(target, 'examples/express-server.mjs')))
      assert.deepEqual(globSync('**/*.test.*', { cwd: target }), [])
    })

  it('gives the documentation its pictures and examples (LIBRARY-7)', () => {
    for (const path of ['docs/tutorials/ci.md', 'docs/decisions/README.md', 'examples/launch.mjs'])
      assert.ok(existsSync(join(installed, path)), path)
    assert.match(readFileSync(join(installed, 'README.md'), 'utf8'), /!\[.*\]\(docs\/images\/portal.png\)/)
    assert.match(readFileSync(join(library, 'README.md'), 'utf8'), /\]\(docs\/interceptor\.md\)/)
  })

  /** The complete servers of a page: what begins with the import of a framework. */
  const SERVERS = [join('docs', 'interceptor.md'), join('src', 'interceptor', 'README.md')].flatMap(page =>
    [...readFileSync(join(ROOT, page), 'utf8').matchAll(/```js\n(\s*import [\s\S]*?)```/g)].map(
      ([, server = ''], at) => ({ name: `server ${at + 1} of ${page}`, server }),
    ),
  )
  for (const file of ['express-server.mjs', 'fastify-server.mjs'])
    SERVERS.push({ name: `examples/${file}`, server: readFileSync(join(ROOT, 'examples', file), 'utf8') })

  it('finds the servers of the documentation', () => assert.equal(SERVERS.length, 5))

  /** Loaded before a server, so that it listens on a free port and is asked when it does. */
  const ASKED = `
    import { Server } from 'node:http'
    const { listen } = Server.prototype
    Server.prototype.listen = function (_port, ...rest) {
      this.once('listening', async () => {
        const { port } = this.address()
        const answer = await fetch('http://127.0.0.1:' + port + '/fhir/Patient/1')
        console.log(answer.status, (await answer.json()).issue[0].code)
        process.exit()
      })
      return listen.call(this, { port: 0, host: '127.0.0.1' }, rest.find(it => typeof it === 'function'))
    }`

  for (const node of NODES)
    for (const { name, server } of SERVERS)
      it(`makes the library that ${name} runs with as it is printed there, on ${nameNode(node)} (LIBRARY-7)`, async () => {
        writeFileSync(join(folder, 'asked.mjs'), ASKED)
        writeFileSync(join(folder, 'server.mjs'), server)
        const { stdout } = await run(node, ['--import', './asked.mjs', 'server.mjs'], { cwd: folder })
        assert.match(stdout, /^401 login$/m)
      })
})

function readManifest(
  folder: string,
): Readonly<Record<string, Readonly<Record<string, string>> | undefined>> {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}
