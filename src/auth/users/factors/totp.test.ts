import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildTotpUri, computeTotpCode, createTotpSecret, encodeBase32, findTotpStep } from './totp.ts'

/** RFC 6238, appendix B, whose codes have 8 digits. */
const SECRET = encodeBase32(Buffer.from('12345678901234567890'))
const VECTORS = [
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
] as const

describe('a code of an authenticator app', () => {
  it('is that of RFC 6238 (FACTOR-2)', () => {
    for (const [seconds, code] of VECTORS)
      assert.equal(computeTotpCode(SECRET, Math.floor(seconds / 30)), code.slice(2))
  })

  it('is accepted one step early or late, and no further (FACTOR-2)', () => {
    const now = 1_111_111_111_000
    const step = Math.floor(now / 30_000)
    const find = (apart: number, lastStep: number | null = null) =>
      findTotpStep(SECRET, computeTotpCode(SECRET, step + apart), { now, lastStep })
    assert.deepEqual(
      [-2, -1, 0, 1, 2].map(apart => find(apart)),
      [undefined, step - 1, step, step + 1, undefined],
    )
    assert.equal(find(0, step), undefined, 'used before')
    assert.equal(find(-1, step), undefined, 'before one that was used')
    assert.equal(find(1, step), step + 1)
  })

  it('has a key of 160 random bits, which the URI of the QR code contains', () => {
    const secret = createTotpSecret()
    assert.match(secret, /^[A-Z2-7]{32}$/)
    assert.notEqual(secret, createTotpSecret())
    assert.equal(
      buildTotpUri(secret, 'St. Mary (ehr.test)', 'ada:b'),
      `otpauth://totp/St.%20Mary%20(ehr.test):ada%3Ab?secret=${secret}&issuer=St.%20Mary%20(ehr.test)`,
    )
  })
})
