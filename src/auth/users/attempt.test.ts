import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { LIMITS } from '../base/limits.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'

eachDatabase((_name, open) => {
  describe('POST /login with wrong passwords', () => {
    let auth: TestAuthServer
    before(async () => {
      auth = await TestAuthServer.open(await open())
    })

    it('responds to the eleventh attempt in 5 minutes with 429, even with the right password (LOGIN-6)', async () => {
      await auth.addUser('forgetful')
      const start = auth.time.now
      for (let at = 0; at < 10; at++) {
        auth.time.now += 1000
        assert.equal((await auth.openBrowser().login('forgetful', 'wrong')).statusCode, 401)
      }
      const locked = await auth.openBrowser().login('forgetful')
      assert.equal(locked.statusCode, 429)
      assert.equal(locked.headers['retry-after'], String(300 - 9))
      assert.match(locked.body, /Too many attempts/)
      // Another username from the same address is not locked.
      assert.equal((await auth.openBrowser().login()).statusCode, 302)
      auth.time.now = start + 1000 + 300_000 - 1
      assert.equal((await auth.openBrowser().login('forgetful')).statusCode, 429)
      auth.time.now += 1
      assert.equal((await auth.openBrowser().login('forgetful')).statusCode, 302)
    })

    it('counts failures by IP address, and resets the count after a success', async () => {
      await auth.addUser('roaming')
      const from = (remoteAddress: string, password: string) =>
        auth.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=roaming&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (let at = 0; at < 10; at++) await from('10.0.0.1', 'wrong')
      assert.equal((await from('10.0.0.1', 'sallyport')).statusCode, 429)
      for (let at = 0; at < 9; at++) await from('10.0.0.2', 'wrong')
      assert.equal((await from('10.0.0.2', 'sallyport')).statusCode, 302)
      assert.equal((await from('10.0.0.2', 'wrong')).statusCode, 401)
    })

    it('never checks more guesses than the limit, even if they are concurrent (LOGIN-6)', async () => {
      await auth.addUser('target')
      const wrong = Array.from({ length: 40 }, () => auth.openBrowser().login('target', 'wrong'))
      await Promise.all(wrong)
      const failures = await auth.openBrowser().login('target')
      assert.equal(failures.statusCode, 429)
    })

    it('refuses the right password among too many concurrent wrong ones', async () => {
      await auth.addUser('guessed')
      const wrong = Array.from({ length: 60 }, () => auth.openBrowser().login('guessed', 'wrong'))
      const right = await auth.openBrowser().login('guessed')
      assert.equal(right.statusCode, 429)
      const statuses = (await Promise.all(wrong)).map(response => response.statusCode)
      const counted = statuses.filter(status => status === 401).length
      assert.ok(counted >= 10 && counted < 10 + LIMITS.passwordsAtOnce, `${counted} guesses were looked at`)
    })

    it('accepts many concurrent logins with the right password', async () => {
      const responses = await Promise.all(Array.from({ length: 30 }, () => auth.openBrowser().login()))
      assert.ok(responses.every(response => response.statusCode === 302))
    })

    it('responds with 429 after too many failures from one IP address, whatever the username, and not to other addresses (LOGIN-6)', async () => {
      const limited = await TestAuthServer.open(auth.store, {
        settings: { loginFailureLimitPerAddress: 20 },
      })
      limited.time.now += 400_000
      const from = (remoteAddress: string, username: string, password: string) =>
        limited.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=${username}&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (const [own, near, far] of [
        ['10.1.0.1', '10.1.0.1', '10.1.0.2'],
        // An IPv6 network counts as one address: its owner has 2^64 of them.
        ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1'],
      ] as const) {
        for (let at = 0; at < 20; at++)
          assert.equal((await from(own, `spray-${own}-${at}`, 'wrong')).statusCode, 401)
        const refused = await from(near, 'clinician', 'sallyport')
        assert.equal(refused.statusCode, 429)
        assert.equal(refused.headers['retry-after'], '300')
        assert.equal((await from(far, 'clinician', 'sallyport')).statusCode, 302)
      }
      limited.time.now += 300_000
      assert.equal((await from('10.1.0.1', 'clinician', 'sallyport')).statusCode, 302)
      await limited.app.close()
    })

    it('counts guesses at one username from one IPv6 network together', async () => {
      const from = (remoteAddress: string, password: string) =>
        auth.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=clinician&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (let at = 1; at <= 10; at++)
        assert.equal((await from(`2001:db8:7:7::${at}`, 'wrong')).statusCode, 401)
      assert.equal((await from('2001:db8:7:7::b', 'sallyport')).statusCode, 429)
      assert.equal((await from('2001:db8:7:8::b', 'sallyport')).statusCode, 302)
    })
  })
})
