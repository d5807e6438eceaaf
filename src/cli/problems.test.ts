import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatProblems } from './problems.ts'

const REFUSED = {
  at: '2026-11-18T02:00:00.000Z',
  kind: 'fhir',
  status: 403,
  app: 'my-app',
  launch: undefined,
  request: 'GET Observation',
  cause: 'No scope.',
  reason: undefined,
  scope: undefined,
  action: 'Request one.',
  compared: undefined,
}

describe('formatProblems', () => {
  it('prints equal problems once, with what to do, without controls (START-14)', () => {
    const compared = [
      { name: 'aud', sent: undefined, expected: ['http://a', 'http://b'], origin: 'required' },
    ] as const
    const token = {
      ...REFUSED,
      kind: 'token',
      status: 400,
      request: undefined,
      app: 'a\u202e',
      action: undefined,
      reason: 'invalid_request: aud is missing',
      scope: 'launch',
      compared,
    }
    assert.equal(
      formatProblems([REFUSED, token, { ...REFUSED, at: '2026-11-18T02:00:01.000Z' }]),
      `2026-11-18T02:00:00.000Z  400 token (a\\u202e)
  No scope.
  The server said: invalid_request: aud is missing
  aud: sent nothing, required http://a or http://b
  Scopes of the token: launch
2026-11-18T02:00:01.000Z  2 times: 403 GET Observation (my-app)
  No scope.
  What to do: Request one.
`,
    )
  })

  it('prints the newest 20, and says how many are older (START-14)', () => {
    const many = Array.from({ length: 25 }, (_, at) => ({ ...REFUSED, request: `GET Patient/${at}` }))
    const [first, ...lines] = formatProblems(many).trimEnd().split('\n')
    assert.equal(first, '5 older problems')
    assert.match(formatProblems(many.slice(4)), /^1 older problem\n/)
    assert.deepEqual([lines.length, lines[0]], [60, '2026-11-18T02:00:00.000Z  403 GET Patient/5 (my-app)'])
  })
})
