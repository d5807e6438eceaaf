import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TestAuthServer } from '../../../testing/test-auth-server.ts'
import { openTestStore } from '../../../testing/test-store.ts'

describe('an administrator', () => {
  const open = openTestStore()

  it('cannot disable or remove the own account, or give up the role, and reads why (ADMIN-24)', async () => {
    const auth = await TestAuthServer.open(await open())
    await auth.addUser('ada', { admin: true })
    await auth.addUser('bob', { admin: true })
    const rows = await auth.store.db.selectFrom('clinician').select(['id', 'username']).execute()
    const ids = Object.fromEntries(rows.map(({ id, username }) => [username, id]))
    const browser = await auth.logIn('ada')
    const links = async (id = '') =>
      [...(await browser.get(`/admin/clinicians/${id}`)).body.matchAll(/\/(remove\S*|disable)"/g)].map(
        match => match[1],
      )
    assert.deepEqual(await links(ids.ada), [])
    assert.deepEqual(await links(ids.bob), ['remove-administrator', 'disable', 'remove'])
    for (const verb of ['remove-administrator', 'disable', 'remove']) {
      const path = `/admin/clinicians/${ids.ada}/${verb}`
      for (const response of [await browser.get(path), await browser.post(path, {})]) {
        assert.equal(response.statusCode, 409, verb)
        assert.match(response.body, /This is your own account\. Another administrator can/, verb)
      }
      const other = await browser.post(`/admin/clinicians/${ids.bob}/${verb}`, {})
      assert.equal(other.statusCode, 303, verb)
    }
    assert.equal((await browser.get('/admin')).statusCode, 200)
  })
})
