import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type Answer, CALLBACK } from './hostile-client.ts'

export type Expected = readonly [status: number, error: string | undefined]
export type Case = readonly [act: () => Promise<Answer>, ...Expected]

/** The attack fails: no code, no token, no redirect to a URL that is not the victim's. */
export function refuses(cases: Readonly<Record<string, Case>>): void {
  for (const [name, [act, status, error]] of Object.entries(cases))
    it(name, async () => {
      const answer = await act()
      assert.deepEqual([answer.status, answer.error], [status, error], answer.body)
      assert.equal(answer.code, undefined)
      assert.doesNotMatch(answer.body, /access_token/)
      if (answer.location) assert.ok(answer.location.startsWith(`${CALLBACK}?`), answer.location)
      assert.equal(answer.headers.get('cache-control'), 'no-store')
    })
}
