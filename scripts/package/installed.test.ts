/** The package as npm installs it, outside of the clone. `npm run test:package` runs this, and the journeys with the same installation. */
import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { listLocked, type Packages } from '../release/bill.ts'
import {
  chooseFolder,
  type Installed,
  installPackage,
  olderNode,
  type Packed,
  packAll,
  readNpmVariables,
  USER_PATH,
} from './install.ts'
import { listNeededFiles } from './needed-files.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)
const SETTINGS = { SMART_SAMPLE_PATIENTS: '1', SMART_WORKERS: '1' }
/** The command of `start --run`: asks the servers as an app would. */
const ASK = `"${process.execPath}" -e 'fetch(process.env.AUTH_URL + "/readyz").then(it => console.log(it.status))'`
const START = ['start', '--ephemeral', '--run', ASK]

/** What keeps a process from the network. Undefined where users may not do that. */
const ALONE =
  spawnSync('unshare', ['-rn', 'true']).status === 0
    ? ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$0" "$@"']
    : undefined
if (ALONE === undefined) process.stderr.write('NOT TRIED: the package without a network (unshare -rn)\n')
const isRoot = process.getuid?.() === 0
if (!isRoot) process.stderr.write('NOT TRIED: the package as a second user, because this is not root\n')

/** The packages of a lock file with their checksums, wherever they are. */
function listVersions(packages: Packages): readonly string[] {
  const found = Object.entries(packages).filter(([path]) => path !== '')
  return found.map(([path, { integrity }]) => `${path.split('node_modules/').at(-1)} ${integrity}`).toSorted()
}

describe('the installed package', () => {
  // Beside the folder of the test run, which only its user can read.
  const own = mkdtempSync(join(tmpdir(), '..', 'sallyport installed-'))
  const folder = chooseFolder(own)
  let packed: Packed
  let installed: Installed
  before(() => {
    packed = packAll(folder)
    installed = installPackage(folder, packed)
  })
  after(() => rmSync(own, { recursive: true, force: true }))

  /** An empty folder of another user or another home. */
  function makeEmpty(): string {
    return mkdtempSync(join(own, 'home '))
  }

  async function listPacked(): Promise<readonly string[]> {
    const { stdout } = await run('tar', ['-tf', packed.sallyport])
    return stdout.split('\n').map(path => path.replace('package/', ''))
  }

  it('has every file that the program reads or starts (PACKAGE-9)', async () => {
    const files = await listPacked()
    const needed = listNeededFiles()
    assert.deepEqual(
      needed.filter(path => !files.includes(path)),
      [],
    )
    assert.ok(needed.includes('src/web/ui/assets/in-use.js'), 'a file of a folder')
  })

  it('has its licence, and the notices of its parts (PACKAGE-10)', async () => {
    const files = await listPacked()
    for (const name of ['LICENSE', 'NOTICE', 'npm-shrinkwrap.json']) assert.ok(files.includes(name), name)
    const notice = readFileSync(join(installed.root, 'NOTICE'), 'utf8')
    for (const path of ['src/auth/users/common-passwords.txt', 'src/fhir/definitions/r4.json'])
      assert.ok(notice.includes(path), path)
    const definitions = readFileSync(join(installed.root, 'src/fhir/definitions/r4.json'), 'utf8')
    const sources: readonly string[] = JSON.parse(definitions).source.match(/https:[^,]+/g)
    assert.ok(sources.length > 1)
    for (const source of sources) assert.ok(notice.includes(source), source)
  })

  it('brings the packages of the tests, in their versions (PACKAGE-10)', () => {
    const read = (path: string) => JSON.parse(readFileSync(join(installed.root, path), 'utf8'))
    const { packages }: { packages: Packages } = read('npm-shrinkwrap.json')
    const other = Object.entries(packages).flatMap(([path, { version }]) => {
      const found = read(join(path, 'package.json')).version
      return found === version ? [] : [`${path}: ${found}, not ${version}`]
    })
    assert.deepEqual(other, [])
    const manifests = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: installed.root })
    assert.deepEqual(
      manifests.map(dirname).filter(path => !(path in packages)),
      [],
    )
    assert.deepEqual(listVersions(packages), listVersions(listLocked()))
  })

  it('runs without a network (PACKAGE-3)', async t => {
    if (ALONE === undefined) return t.skip('no such sandbox here')
    const [file = '', ...before] = ALONE
    const args = [...before, ...installed.program, ...START]
    const { stdout } = await run(file, args, {
      cwd: makeEmpty(),
      env: { ...SETTINGS, PATH: process.env.PATH },
    })
    assert.equal(stdout, '200\n')
  })

  it('runs for a second user, who shares the cache of the first (PACKAGE-5)', async t => {
    if (!isRoot) return t.skip('only root becomes another user')
    const [nobody, cwd] = [65_534, mkdtempSync(join(folder, 'nobody '))]
    await run('chown', [String(nobody), cwd])
    const { stdout } = await run(installed.command, START, {
      cwd,
      uid: nobody,
      gid: nobody,
      env: { ...SETTINGS, PATH: USER_PATH, HOME: cwd, TMPDIR: cwd, XDG_CACHE_HOME: installed.cache },
    })
    assert.equal(stdout, '200\n')
  })

  it('runs by npx, from a folder with a space in its name (PACKAGE-6)', async () => {
    const cwd = makeEmpty()
    const args = ['--yes', '--prefer-offline', '--package', packed.sallyport, 'sallyport', '--version']
    const env = { PATH: USER_PATH, HOME: cwd, XDG_CACHE_HOME: installed.cache, ...readNpmVariables() }
    const { stdout } = await run('npx', args, { cwd, env })
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.equal(stdout.trim(), version)
  })

  it('takes its servers along if it is killed (PACKAGE-6)', async () => {
    const [file = '', ...before] = installed.program
    const child = spawn(file, [...before, 'start', '--ephemeral', '--ready'], {
      cwd: makeEmpty(),
      env: SETTINGS,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let log = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      log += text
    })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    // The servers hold the pipes open as long as they run.
    await once(child, 'close')
    assert.match(log, /Stopped\.\n$/)
  })

  describe('on a machine without its Node', {
    skip: olderNode === undefined && 'there is no older Node',
  }, () => {
    /** Runs a command with an npm that is this script. */
    async function launch(npm: string, env: Readonly<Record<string, string>> = {}) {
      const home = makeEmpty()
      const tools = join(home, 'tools')
      mkdirSync(tools)
      const calls = join(home, 'calls')
      writeFileSync(join(tools, 'npm'), `#!/bin/sh\necho "$@" >> "$CALLS"\n${npm}\n`, { mode: 0o755 })
      const options = { cwd: home, env: { PATH: `${tools}:${USER_PATH}`, HOME: home, CALLS: calls, ...env } }
      const failed = await run(installed.command, ['--version'], options).then(
        ({ stdout }) => assert.fail(stdout),
        error => error,
      )
      return {
        stderr: String(failed.stderr),
        calls: () => readFileSync(calls, 'utf8').trimEnd().split('\n'),
      }
    }

    it('says so after one question if npm has no network (PACKAGE-5)', async () => {
      const { stderr, calls } = await launch('exit 1')
      assert.match(stderr, /^Sallyport needs Node 26 .*: npm cannot reach its registry\.$/m)
      assert.match(calls().join('\n'), /^ci .*--offline.*\nview .*--fetch-retries=0.*$/)
    })

    it('does not wait for a registry that does not answer (PACKAGE-5)', async () => {
      const { stderr } = await launch('case "$1" in view) exec sleep 900;; *) exit 1;; esac')
      assert.match(stderr, /: npm cannot reach its registry\.$/m)
    })

    it('gives npm a folder for its downloads if the home of the user cannot be written (PACKAGE-5)', async () => {
      const cache = makeEmpty()
      const { calls } = await launch('echo "$npm_config_cache" >> "$CALLS"\nexit 1', {
        HOME: '/dev/null',
        XDG_CACHE_HOME: cache,
      })
      assert.ok(calls()[1]?.startsWith(join(cache, 'sallyport/')), String(calls()[1]))
    })

    it('names the variable that moves the cache if that cannot be written (PACKAGE-5)', async () => {
      const { stderr } = await launch('exit 1', { HOME: '/dev/null' })
      assert.match(stderr, /Cannot install \S+: \S.*\. XDG_CACHE_HOME sets another folder for it\.$/m)
    })
  })
})
