import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ACR_VALUES, chooseAcr, meetsAcr } from './methods.ts'

describe('meetsAcr', () => {
  const { passkey, mfa } = ACR_VALUES
  const used = { acr: passkey, amr: ['pwd', 'pop', 'user', 'mfa'] }

  it('lets a passkey meet the class of any second factor, also after the password of a directory (FACTOR-6)', () => {
    for (const login of [used, { ...used, issuer: 'ldap:hospital' }]) {
      assert.deepEqual([meetsAcr(login, passkey), meetsAcr(login, mfa)], [true, true])
      assert.equal(chooseAcr(login, [mfa]), mfa)
    }
  })

  it('concludes nothing from the methods of an OpenID provider (FACTOR-6)', () => {
    const login = { amr: used.amr, issuer: 'https://login.example' }
    assert.deepEqual([meetsAcr(login, passkey), meetsAcr(login, mfa)], [false, false])
    assert.equal(meetsAcr({ ...login, acr: mfa }, mfa), true)
  })
})
