import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encode } from '../testing/auth-server.ts'
import { readJwt } from './jwt.ts'

const [head, body] = [encode({ alg: 'RS256' }), encode({ sub: 'ä' })]

describe('readJwt', () => {
  it('takes a token apart', () => {
    assert.deepEqual(readJwt(`${head}.${body}.c2ln`), {
      header: { alg: 'RS256' },
      claims: { sub: 'ä' },
      input: Buffer.from(`${head}.${body}`),
      signature: Buffer.from('sig'),
    })
  })

  it('is undefined where it is none', () => {
    const bytes = Buffer.from('{"a":"\xff"}', 'latin1').toString('base64url')
    for (const token of [
      '',
      head,
      `${head}.${body}`,
      `${head}.${body}.`,
      `${head}.${body}.c2ln.c2ln`,
      `${head}.${body}.c2=n`,
      `${head}.${body}.c2ln\n`,
      ` ${head}.${body}.c2ln`,
      `${encode([])}.${body}.c2ln`,
      `${encode(null)}.${body}.c2ln`,
      `${head}.${encode('x')}.c2ln`,
      `${head}.${encode(5)}.c2ln`,
      `${head}.${encode([1])}.c2ln`,
      `${head}.${bytes}.c2ln`,
      `${bytes}.${body}.c2ln`,
      `${head}.e30x.c2ln`,
      `e30x.${body}.c2ln`,
    ])
      assert.equal(readJwt(token), undefined, token)
  })
})
