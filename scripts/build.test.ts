import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
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
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { HttpUser } from '../test/support/http-user.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..')
const MAX_BYTES = 3_000_000

/** The Node of the machine, if it is one that only the launcher and the interceptor run on. */
const olderNode = (process.env.PATH ?? '')
  .split(delimiter)
  .map(folder => join(folder, process.platform === 'win32' ? 'node.exe' : 'node'))
  .find(
    path =>
      existsSync(path) && /^v2[0-5]\./.test(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout),
  )
const NODES = [process.execPath, ...(olderNode === undefined ? [] : [olderNode])]
if (olderNode === undefined)
  process.stderr.write('NOT TRIED: the package on Node 20, which is not on the PATH\n')

const LOCK = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
/** The package with the Node of this machine. */
const NODE_PACKAGE =
  Object.keys(LOCK.packages[''].optionalDependencies).find(name =>
    existsSync(join(ROOT, 'node_modules', name)),
  ) ?? ''

/** FHIR servers of somebody else, in plain JavaScript, that have the package below their node_modules. */
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
    app.use(expressInterceptor(options))
    const server = app.listen(0, '127.0.0.1', () => ask(server.address().port))`,
  fastify: `
    import fastify from 'fastify'
    import { fastifyInterceptor } from 'sallyport/interceptor'
    const app = fastify()
    await app.register(fastifyInterceptor(options))
    app.get('/fhir/Patient', async () => 'let through')
    await app.listen({ port: 0, host: '127.0.0.1' })
    await ask(app.server.address().port)`,
} as const

const ASK = `
  const options = { authUrl: 'http://127.0.0.1:9', fhirBaseUrl: 'http://127.0.0.1:1/fhir' }
  async function ask(port) {
    const answer = await fetch('http://127.0.0.1:' + port + '/fhir/Patient')
    console.log(answer.status, (await answer.json()).issue[0].code)
    process.exit()
  }`

const CONSUMER = `
  import { createTrailSender, expressInterceptor, fastifyInterceptor, getAuthorization } from 'sallyport/interceptor'
  import type { AuditRecord, Grant, HostOptions } from 'sallyport/interceptor'
  const server = { authUrl: 'https://auth.example', fhirBaseUrl: 'https://fhir.example/fhir' }
  const trail = createTrailSender({ ...server, clientId: 'a', credential: { secret: 'b' }, onError: console.error })
  const onDecision = ({ allowed, reason }: AuditRecord) => console.log(allowed, reason)
  const options: HostOptions = { ...server, contexts: ['patient', 'user'], trail, onDecision }
  expressInterceptor(options)
  fastifyInterceptor(options)
  export const find = (request: object): Grant | undefined => getAuthorization(request)?.grant
`

describe('npm run build', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-build-'))
  const installed = join(folder, 'node_modules/sallyport')
  const launcher = join(installed, 'src/launcher/main.js')
  const cache = join(folder, 'cache')
  let tarball = ''
  before(async () => {
    const dist = join(folder, 'dist')
    await run(process.execPath, [join(import.meta.dirname, 'build.ts'), dist])
    const { stdout } = await run('npm', ['pack', dist, '--json', '--pack-destination', folder])
    tarball = join(folder, JSON.parse(stdout)[0].filename)
    // What npm install does, with packages that are already here.
    mkdirSync(installed, { recursive: true })
    await run('tar', ['-xf', tarball, '--strip-components=1', '-C', installed])
    for (const [name] of Object.entries(
      JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).dependencies,
    ))
      link(name)
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

  it(`makes a tarball of less than ${MAX_BYTES / 1e6} MB (PACKAGE-1)`, () => {
    assert(statSync(tarball).size < MAX_BYTES, String(statSync(tarball).size))
  })

  for (const node of NODES)
    for (const [name, host] of Object.entries(HOSTS))
      it(`makes a package whose interceptor guards a ${name} server on ${node === olderNode ? 'an older Node' : 'Node 26'} (LIBRARY-7)`, async () => {
        writeFileSync(join(folder, `${name}.mjs`), `${ASK}\n${host}`)
        const { stdout } = await run(node, [`${name}.mjs`], { cwd: folder })
        assert.equal(stdout.trim(), '401 login')
      })

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])
    it(`has types that TypeScript accepts with the resolution ${moduleResolution} (PACKAGE-2)`, async () => {
      const project = join(folder, `types-${moduleResolution}`)
      mkdirSync(project)
      writeFileSync(join(project, 'index.ts'), CONSUMER)
      writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
      const compilerOptions = {
        module,
        moduleResolution,
        strict: true,
        noEmit: true,
        lib: ['es2023'],
        types: ['node'],
      }
      writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
      await run('tsc', ['-p', project])
    })

  for (const node of NODES)
    it(`starts the servers in an empty folder by the launcher on ${node === olderNode ? 'an older Node' : 'Node 26'} (PACKAGE-3)`, async () => {
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

  for (const node of NODES)
    it(`stops the servers if npx gets SIGTERM, on ${node === olderNode ? 'an older Node' : 'Node 26'} (PACKAGE-6)`, async () => {
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
      await npm('install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--fetch-retries=0', tarball)
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
    const launch = () => run(olderNode, [launcher, '--help'], { cwd: place, env })
    const [first, second] = [await launch(), await launch()]
    assert.match(first.stdout, /^Usage: sallyport /m)
    assert.match(first.stderr, /^Sallyport needs a newer Node: installing \S+@26\.\S+ in \S+, once\.\n$/)
    assert.deepEqual(second, { stdout: first.stdout, stderr: '' })
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

  it('contains the documentation, with its pictures and examples, and no link to a file that it lacks (LIBRARY-7)', () => {
    const pages = globSync('**/*.md', { cwd: installed })
    for (const page of ['README.md', 'docs/tutorials/ci.md', 'docs/decisions/README.md'])
      assert.ok(pages.includes(page), page)
    const broken = pages.flatMap(page =>
      [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]*)/g)]
        .map(([, path = '']) => join(page, '..', path))
        .filter(path => !existsSync(join(installed, path))),
    )
    assert.deepEqual(broken, [])
    assert.match(readFileSync(join(installed, 'README.md'), 'utf8'), /!\[.*\]\(docs\/images\/portal.png\)/)
    assert.ok(existsSync(join(installed, 'examples/launch.mjs')))
    assert.deepEqual(globSync('**/*.test.*', { cwd: installed }), [])
  })

  const ANSWER = `console.log(answer.status, (await answer.json()).issue[0].code)
    process.exit()`
  for (const node of NODES)
    for (const [name, listen, ask] of [
      [
        'express',
        'app.listen(3000)',
        `app.listen(0, '127.0.0.1', async function () {
          const answer = await fetch('http://127.0.0.1:' + this.address().port + '/fhir/Patient/1')
          ${ANSWER}
        })`,
      ],
      [
        'fastify',
        'await app.listen({ port: 3000 })',
        `const answer = await fetch(await app.listen({ port: 0, host: '127.0.0.1' }) + '/fhir/Patient/1')
         ${ANSWER}`,
      ],
    ] as const)
      it(`makes the package that the ${name} server of docs/interceptor.md runs with as it is printed there, on ${node === olderNode ? 'an older Node' : 'Node 26'}`, async () => {
        const page = readFileSync(join(ROOT, 'docs/interceptor.md'), 'utf8')
        const blocks = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map(([, block = '']) => block)
        const block = blocks.find(it => it.includes(`from '${name}'`)) ?? assert.fail(name)
        const server = block.replace(listen, () => ask)
        assert.notEqual(server, block)
        writeFileSync(join(folder, 'server.mjs'), server)
        const { stdout } = await run(node, ['server.mjs'], { cwd: folder })
        assert.equal(stdout.trim(), '401 login')
      })

  it('makes a library that works without any other package, from its folder (LIBRARY-7)', async () => {
    const alone = mkdtempSync(join(tmpdir(), 'sallyport-vendor-'))
    try {
      await run('tar', ['-xf', tarball, '--strip-components=1', '-C', alone])
      const program = `import { expressInterceptor } from '${join(alone, 'src/interceptor/index.js')}'
        console.log(typeof expressInterceptor)`
      const { stdout } = await run(NODES.at(-1) ?? '', ['--input-type=module', '-e', program], { cwd: alone })
      assert.equal(stdout.trim(), 'function')
    } finally {
      rmSync(alone, { recursive: true, force: true })
    }
  })
})
