import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { eachDatabase } from '../../../test/support/databases.ts'
import { AuthHouse, claimsOf } from '../testing/auth-house.ts'

eachDatabase((_name, open) => {
  describe('POST /oauth2/token with a code', () => {
    let house: AuthHouse
    before(async () => {
      house = await AuthHouse.open(await open())
    })

    it('answers with the patient and encounter beside the token', async () => {
      const visitor = await house.loggedIn()
      const response = await house.exchange(await house.code(visitor))
      assert.equal(response.statusCode, 200, response.body)
      const body = response.json()
      assert.equal(body.patient, 'juniper')
      console.log(body, claimsOf(body.access_token), claimsOf(body.id_token), response.headers)
    })
  })
})
