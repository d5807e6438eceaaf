import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSealer } from './index.ts'

const { seal, sealSame, open, derive } = createSealer('the secret of these tests')

describe('createSealer', () => {
  it('derives a secret for each purpose, the same each time', () => {
    assert.equal(derive('a'), derive('a'))
    assert.match(derive('a'), /^[\w-]{43}$/)
    const others = [derive('b'), createSealer('another').derive('a')]
    assert.ok(!others.includes(derive('a')))
  })

  it('decrypts what it encrypted', () => {
    assert.equal(open(seal('Ärztin 🩺', 'tokens'), 'tokens'), 'Ärztin 🩺')
    assert.equal(open(seal('', 'tokens'), 'tokens'), '')
  })

  it('encrypts the same text differently each time and reveals nothing of it', () => {
    const one = seal('access token', 'tokens')
    assert.notEqual(one, seal('access token', 'tokens'))
    assert.doesNotMatch(Buffer.from(one.slice(3), 'base64url').toString('latin1'), /access/)
  })

  it('encrypts the same text in the same way where that is asked for, and another text with another nonce', () => {
    const one = sealSame('file 1', 'files')
    assert.equal(one, sealSame('file 1', 'files'))
    assert.equal(open(one, 'files'), 'file 1')
    const nonces = [one, sealSame('file 2', 'files'), sealSame('file 1', 'others')].map(it => it.slice(3, 19))
    assert.equal(new Set(nonces).size, 3)
  })

  it('does not decrypt a text for another purpose', () => {
    assert.throws(
      () => open(seal('x', 'tokens'), 'signing key'),
      /^Error: Cannot decrypt signing key: it was changed/,
    )
  })

  it('does not decrypt a text for another row, column or table, or for no row (STORE-2)', () => {
    const cell = { table: 'app_session', column: 'tokens_sealed', row: 'a' } as const
    const sealed = seal('x', cell)
    assert.equal(open(sealed, { ...cell }), 'x')
    for (const other of [
      { ...cell, row: 'b' },
      { ...cell, column: 'code_verifier_sealed' },
      { ...cell, table: 'app_launch' },
      'app_session.tokens_sealed',
    ] as const)
      assert.throws(() => open(sealed, other), /^Error: Cannot decrypt [^:]+: it was changed, moved/)
    assert.throws(() => open(seal('x', 'app_session.tokens_sealed'), cell), /Cannot decrypt/)
  })

  it('does not decrypt a text encrypted with another secret (STORE-2)', () => {
    assert.throws(() => createSealer('another').open(seal('x', 'tokens'), 'tokens'), /SMART_SECRET/)
  })

  it('does not decrypt a text that was changed, truncated or never encrypted', () => {
    const sealed = seal('x', 'tokens')
    const content = Buffer.from(sealed.slice(3), 'base64url')
    for (let i = 0; i < content.length; i++) {
      const changed = Buffer.from(content)
      changed.writeUInt8(changed.readUInt8(i) ^ 1, i)
      assert.throws(() => open(`v1.${changed.toString('base64url')}`, 'tokens'), /it was changed/)
    }
    for (const text of [
      '',
      'v1.',
      'v1.AAAA',
      sealed.slice(0, -4),
      content.toString('base64url'),
      // Another spelling of the same bytes.
      `${sealed}=`,
      `${sealed} `,
      `v1. ${sealed.slice(3)}`,
      `${sealed}.`,
    ]) {
      assert.throws(() => open(text, 'tokens'), /Cannot decrypt tokens/)
    }
  })

  it('never includes the encrypted text in its error', () => {
    assert.throws(
      () => open('v1.not-sealed-at-all-but-long-enough-to-look-so', 'tokens'),
      (error: Error) => !error.message.includes('not-sealed'),
    )
  })
})
