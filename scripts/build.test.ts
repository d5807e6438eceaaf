import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..')

// A FHIR server of somebody else, in plain JavaScript, that has the package below its node_modules.
const HOST = `
import { createServer } from 'node:http'
import { expressInterceptor } from 'sallyport/interceptor'
const guard = expressInterceptor({ authUrl: 'http://127.0.0.1:9', fhirBaseUrl: 'http://127.0.0.1:1/fhir' })
const server = createServer((request, response) => guard(request, response, () => response.end('let through')))
server.listen(0, '127.0.0.1', async () => {
  const answer = await fetch('http://127.0.0.1:' + server.address().port + '/Patient')
  console.log(answer.status, (await answer.json()).issue[0].code)
  process.exit()
})
`

describe('npm run build', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-build-'))
    await run(process.execPath, [
      join(import.meta.dirname, 'build.ts'),
      join(folder, 'node_modules/sallyport'),
    ])
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('makes a package whose interceptor guards another server, below node_modules and without a dependency (LIBRARY-7)', async () => {
    await writeFile(join(folder, 'host.mjs'), HOST)
    const { stdout } = await run(process.execPath, ['host.mjs'], { cwd: folder })
    assert.equal(stdout.trim(), '401 login')
  })

  // `tsconfig.build.json` has the JavaScript of Node 20 as its library, so that the build fails for newer functions.
  it('imports nothing that Node 20.0 does not have (LIBRARY-7)', async () => {
    const known = new Set(
      `Socket Transform constants createHash createPublicKey promisify randomUUID readFileSync sign verify`.split(
        ' ',
      ),
    )
    const root = join(folder, 'node_modules/sallyport')
    const files = (await readdir(root, { recursive: true })).filter(name => name.endsWith('.js'))
    const texts = await Promise.all(files.map(name => readFile(join(root, name), 'utf8')))
    const imported = texts.flatMap(text =>
      [...text.matchAll(/^import \{([^}]*)\} from 'node:[^']*'/gm)].flatMap(([, names = '']) =>
        names.split(',').map(name => name.trim()),
      ),
    )
    assert.ok(imported.includes('createHash'))
    assert.deepEqual(
      imported.filter(name => !known.has(name)),
      [],
    )
  })

  it('documents the package with the page of the interceptor, without links to files that it does not contain (LIBRARY-7)', async () => {
    const read = (name: string) => readFile(join(folder, 'node_modules/sallyport', name), 'utf8')
    assert.match(await read('README.md'), /^# Protect your own Node FHIR server\n/)
    for (const name of ['README.md', 'SECURITY.md', 'CHANGELOG.md'])
      assert.doesNotMatch(await read(name), /\]\((?!https?:|#)/, name)
  })

  it('makes the package that the server of docs/interceptor.md runs with as it is printed there', async () => {
    const page = await readFile(join(ROOT, 'docs/interceptor.md'), 'utf8')
    const [, block = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
    const asked = `, async function () {
      const answer = await fetch('http://127.0.0.1:' + this.address().port + '/fhir/Patient/1')
      console.log(answer.status, (await answer.json()).issue[0].code)
      process.exit()
    })`
    const server = block.replace('app.listen(3000)', `app.listen(0, '127.0.0.1'${asked}`)
    assert.notEqual(server, block)
    await symlink(join(ROOT, 'node_modules/express'), join(folder, 'node_modules/express'))
    await writeFile(join(folder, 'server.mjs'), server)
    const { stdout } = await run(process.execPath, ['server.mjs'], { cwd: folder })
    assert.equal(stdout.trim(), '401 login')
  })
})
