import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findConstantFaults } from './constants.ts'

const time = 'export const HOUR_MS = 3_600_000\nexport const DAY_MS = 24 * HOUR_MS\n'
const findFaults = (text: string) =>
  findConstantFaults(
    new Map([
      ['src/core/time.ts', time],
      ['src/auth/a.ts', text],
    ]),
  )

describe('findConstantFaults', () => {
  it('accepts constants of core/time.ts', () => {
    assert.deepEqual(findFaults('const KEPT_MS = 2 * DAY_MS'), [])
  })

  for (const found of ['86_400_000', '3_600_000', 'const DAY_MS ='])
    it(`refuses ${found}`, () => {
      assert.deepEqual(findFaults(`${found} 1`), [
        `src/auth/a.ts: ${found}: use HOUR_MS, DAY_MS of src/core/time.ts`,
      ])
    })
})
