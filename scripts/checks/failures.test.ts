import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findFailureFaults } from './failures.ts'

function findFaults(text: string, file = 'src/auth/a.ts'): readonly string[] {
  return findFailureFaults(new Map([[file, text]]))
}

describe('findFailureFaults', () => {
  const wrong: readonly (readonly [text: string, fault: RegExp])[] = [
    ['return { ok: false, reason }', /ok: false: return a value, or a failure/],
    ['interface Read {\n  readonly ok: boolean\n}', /ok: boolean: return/],
    ['return { success: true }', /success: true: return/],
    ['if (!created.ok) return created', /created\.ok: return/],
    ['return created?.ok', /created\?\.ok: return/],
    ["if ('error' in created) return created", /'error' in created: tell a failure by isFailure/],
    ["return 'token' in this.created", /'token' in this\.created: tell/],
    ['class Denied extends Error {', /class Denied extends Error: return an expected failure/],
    ['class Denied extends TypeError {}', /class Denied extends TypeError: return/],
    ['const LONGEST_WORD = 5', /const LONGEST_WORD: begin the name with MAX_ or MIN_/],
    ['const SMALLEST_WORD = 5', /const SMALLEST_WORD: begin/],
    ['const [a, b] = [find(1), find(2)]', /const \[a, b\] = \[: write a declaration for each/],
    ['let [a, b] = [\n  1,\n  2,\n]', /let \[a, b\] = \[: write/],
    ["throw new AdminFailure('own-account')", /return an expected failure/],
    ["throw refuse('code-used')", /return an expected failure/],
    ['throw NOT_AN_EXPORT', /return an expected failure/],
    ['  await recordAction(admin, { operation })', /what recordAction returns/],
  ]
  for (const [text, fault] of wrong)
    it(`finds the fault in: ${text.replaceAll('\n', ' ')}`, () => {
      const [first, ...others] = findFaults(text)
      assert.match(first ?? '', /^src\/auth\/a\.ts: /)
      assert.match(first ?? '', fault)
      assert.deepEqual(others, [])
    })

  const right = [
    'if (!response.ok) return',
    'return tokenResponse.ok',
    "const type = 'type' in interaction ? interaction.type : undefined",
    "return 'code' in error",
    'class DatabaseUnavailable extends Error {}',
    'class Refusal extends Failing {',
    'const MAX_WORDS = 5',
    'if (isFailure(created)) return created',
    'throw error',
    'const refused = await recordAction(admin, { operation })',
  ]
  for (const text of right)
    it(`finds no fault in: ${text}`, () => {
      assert.deepEqual(findFaults(text), [])
    })

  it('finds nothing in tests and outside of src', () => {
    const text = 'class Denied extends Error {}'
    assert.deepEqual(findFaults(text, 'src/auth/a.test.ts'), [])
    assert.deepEqual(findFaults(text, 'src/auth/testing/a.ts'), [])
    assert.deepEqual(findFaults(text, 'test/a.ts'), [])
  })

  it('accepts the errors that end whatever is under way, and no other', () => {
    assert.deepEqual(findFaults('class NotReady extends Error {}'), [])
    assert.equal(findFaults('class AlmostReady extends Error {}').length, 1)
  })

  it('accepts a report that an endpoint shows as JSON only where it is made', () => {
    assert.deepEqual(findFaults('return { ok: true }', 'src/web/http/health.ts'), [])
    assert.equal(findFaults('return { ok: true }', 'src/web/other.ts').length, 1)
  })
})
