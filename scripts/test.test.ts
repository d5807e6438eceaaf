import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { SLOW_TESTS } from './slow-tests.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-runner-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, body: string): string {
  const file = join(folder, name)
  writeFileSync(
    file,
    `import assert from 'node:assert/strict'\nimport { describe, it } from 'node:test'\n${body}`,
  )
  return file
}

/** Runs the test command as a user does; the runner of this test must not take it for one of its files. */
function runTests(...args: readonly string[]): {
  code: number | null
  out: string
  lastLine: string | undefined
} {
  const { NODE_TEST_CONTEXT: _, TEST_NEEDS: __, ...env } = process.env
  const done = spawnSync(process.execPath, [join(import.meta.dirname, 'test.ts'), ...args], {
    encoding: 'utf8',
    env: { ...env, NO_COLOR: '1' },
  })
  const out = done.stdout + done.stderr
  return { code: done.status, out, lastLine: done.stdout.trimEnd().split('\n').at(-1) }
}

it('leaves out only files that exist', () => {
  for (const name of SLOW_TESTS) assert.ok(existsSync(join(import.meta.dirname, '..', name)), name)
})

const PASSING = "describe('a', () => { it('one', () => {}); it('two', () => {}) })"

describe('npm test', () => {
  it('counts tests, not suites, and exits 0 when all pass', () => {
    write('a.test.ts', PASSING)
    write('b.test.ts', "it('three', () => {})")
    const { code, lastLine } = runTests(folder)
    assert.equal(lastLine, '3 passed, 0 failed')
    assert.equal(code, 0)
  })

  it('exits 1 and shows the error when one fails', () => {
    write(
      'a.test.ts',
      `${PASSING}\ndescribe('b', () => { it('breaks', () => assert.equal(1, 2, 'one is not two')) })`,
    )
    const { code, out, lastLine } = runTests(folder)
    assert.equal(lastLine, '2 passed, 1 failed')
    assert.equal(code, 1)
    assert.match(out, /✖ breaks \S+a\.test\.ts/)
    assert.match(out, /one is not two/)
  })

  it('repeats at its end what failed before', () => {
    write('a.test.ts', "it('breaks', () => assert.equal(1, 2, 'one is not two'))")
    write('b.test.ts', PASSING)
    const { out } = runTests(folder)
    const end = out.slice(out.indexOf('What failed:'))
    assert.match(end, /✖ breaks \S+a\.test\.ts\n.*one is not two[\s\S]*\n2 passed, 1 failed\n$/)
  })

  it('counts a test that is to do neither as passed nor as failed', () => {
    const body =
      "it('open', { todo: 'later' }, () => assert.equal(1, 2))\nit('done', { todo: 'later' }, () => {})"
    const { code, out, lastLine } = runTests(write('a.test.ts', `${PASSING}\n${body}`))
    assert.deepEqual([code, lastLine], [0, '2 passed, 0 failed'])
    assert.match(out, /done passes: it is no longer to do\n.*2 passed, 2 to do/)
  })

  const broken: readonly (readonly [what: string, body: string])[] = [
    ['a file that does not load', "import './nothing.ts'"],
    ['a file that does not parse', 'const = 1'],
    ['a file that throws', "throw new Error('at once')"],
    [
      'a hook that throws',
      "import { before } from 'node:test'\ndescribe('a', () => { before(() => { throw new Error('no') }); it('x', () => {}) })",
    ],
    ['a suite that throws', "describe('a', () => { throw new Error('no') })"],
    ['a process that ends with an error', "it('x', () => {})\nprocess.exitCode = 3"],
    ['an error after the tests', "it('x', () => { setTimeout(() => { throw new Error('late') }, 5) })"],
  ]
  for (const [what, body] of broken) {
    it(`exits 1 for ${what}`, () => {
      const { code, lastLine } = runTests(write('a.test.ts', body))
      assert.equal(code, 1)
      assert.match(lastLine ?? '', /^\d+ passed, [1-9]\d* failed$/)
    })
  }

  it('runs the files of a folder in one process, each with its own hooks', () => {
    write(
      'a.test.ts',
      "import { after, beforeEach } from 'node:test'\nlet calls = 0\nbeforeEach(() => { calls += 1; globalThis.shared = true })\nafter(() => assert.equal(calls, 1))\nit('one', () => {})",
    )
    write('b.test.ts', "it('two', () => assert.equal(globalThis.shared, true))\nit('three', () => {})")
    const { out, lastLine } = runTests(folder)
    assert.equal(lastLine, '3 passed, 0 failed')
    assert.match(out, /✔ \S+a\.test\.ts 1 passed \([\d.]+ s\)\n✔ \S+b\.test\.ts 2 passed/)
  })

  const crashing: readonly (readonly [what: string, body: string, others: number])[] = [
    ['ends the process', "it('x', () => process.exit(3))", 1],
    ['does not end', "it('x', () => {})\nsetInterval(() => {}, 1000)", 2],
    [
      'throws outside of its promises',
      "it('x', async () => { setTimeout(() => { throw new Error('later') }); await new Promise(done => setTimeout(done, 50)) })",
      1,
    ],
  ]
  for (const [what, body, others] of crashing) {
    it(`fails a file that ${what}, and loses no other file`, () => {
      write('a.test.ts', body)
      write('b.test.ts', "it('y', () => {})")
      const { code, out, lastLine } = runTests('--timeout', '3', folder)
      assert.equal(code, 1)
      assert.match(out, /✖ \S+a\.test\.ts/)
      assert.match(out, /✔ \S+b\.test\.ts 1 passed/)
      assert.equal(lastLine, `${others} passed, 1 failed`)
    })
  }

  it('exits 1 when files end the process together and pass alone', () => {
    write('a.test.ts', "it('x', () => { globalThis.shared = true })")
    write('b.test.ts', "it('y', () => { if (globalThis.shared) process.exitCode = 3 })")
    const { code, out, lastLine } = runTests(folder)
    assert.equal(code, 1)
    assert.match(out, /The process of \S+ ended with exit code 3/)
    assert.equal(lastLine, '2 passed, 1 failed')
  })

  it('takes files, and only those', () => {
    const file = write('a.test.ts', PASSING)
    write('b.test.ts', "it('breaks', () => assert.fail())")
    assert.equal(runTests(file).lastLine, '2 passed, 0 failed')
  })

  it('takes a pattern of names', () => {
    assert.equal(runTests('--name', 'two', write('a.test.ts', PASSING)).lastLine, '1 passed, 0 failed')
  })

  it('exits 1 when there is nothing to run', () => {
    const { code, out } = runTests(folder)
    assert.equal(code, 1)
    assert.match(out, /Cannot run tests: no \*\.test\.ts in/)
  })
})
