import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findDifference, type Piece } from './difference.ts'

const REGISTERED = 'http://localhost:3000/app/callback'

/** Both values, with brackets around that which differs. */
function mark(sent: string, ...expected: readonly string[]): readonly string[] {
  const found = findDifference(sent, expected)
  assert(found)
  const format = (pieces: readonly Piece[]) =>
    pieces.map(({ text, differs }) => (differs ? `[${text}]` : text)).join('')
  return [format(found.sent), format(found.expected), found.words.join(', ')]
}

describe('findDifference', () => {
  it('names the differing parts of two URLs, and marks them in both (ACTIVITY-4)', () => {
    for (const [sent, ...expected] of [
      [
        'https://localhost:3000/app/callback',
        '[https://]localhost:3000/app/callback',
        '[http://]localhost:3000/app/callback',
        'the scheme (https instead of http)',
      ],
      [
        'http://127.0.0.1:3000/app/callback',
        'http://[127.0.0.1]:3000/app/callback',
        'http://[localhost]:3000/app/callback',
        'the host (127.0.0.1 instead of localhost)',
      ],
      [
        'http://localhost/app/callback',
        'http://localhost/app/callback',
        'http://localhost[:3000]/app/callback',
        'the port (none instead of 3000)',
      ],
      [
        'http://localhost:3000/app/callback/',
        'http://localhost:3000/app/callback[/]',
        'http://localhost:3000/app/callback',
        'the slash at the end, which it should not have',
      ],
      [
        'http://localhost:3000/app/Callback',
        'http://localhost:3000/app/[Callback]',
        'http://localhost:3000/app/[callback]',
        'the path (/app/Callback instead of /app/callback: upper and lower case count)',
      ],
      [
        'http://localhost:3001/app/cb?x=1#y',
        'http://localhost[:3001]/app/[cb][?x=1][#y]',
        'http://localhost[:3000]/app/[callback]',
        'the port (3001 instead of 3000), the path (/app/cb instead of /app/callback), the query (?x=1 instead of none), the fragment (#y instead of none)',
      ],
      [
        'http://[::1]:3000/app/callback',
        'http://[[::1]]:3000/app/callback',
        'http://[localhost]:3000/app/callback',
        'the host ([::1] instead of localhost)',
      ],
    ] as const)
      assert.deepEqual(mark(sent, REGISTERED), expected)
  })

  it('notices a missing slash at the end', () => {
    assert.deepEqual(mark('https://app.example', 'https://app.example/'), [
      'https://app.example',
      'https://app.example[/]',
      'the slash at the end, which is missing',
    ])
  })

  it('compares with the most similar value', () => {
    const expected = ['https://other.example/callback', REGISTERED, 'http://localhost:3000/other']
    assert.equal(findDifference('http://localhost:3000/app/cb', expected)?.nearest, REGISTERED)
    assert.equal(findDifference('x', []), undefined)
  })

  it('does not compare the values of a query, which the audit trail hides', () => {
    const [, , words] = mark('https://a.example/cb?tenant=…&x=…', 'https://b.example/cb?tenant=1&x=2')
    assert.equal(words, 'the host (a.example instead of b.example)')
  })

  it('marks all of a value that is not a URL', () => {
    assert.deepEqual(mark('token', 'code'), ['[token]', '[code]', ''])
  })

  it('takes no longer for a text that is almost a URL', () => {
    const text = `a:${'//'.repeat(5000)}`
    assert.ok(findDifference(text, [text.replace('a:', 'b:')]))
  })
})
