import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('/logout', () => {
  const open = openTestStore()

  it('shows a button on GET and ends the login on POST (LOGIN-10)', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    const id = browser.cookies.get('sallyport-login') ?? ''
    const page = await browser.get('/logout')
    assert.match(page.body, /<form[^>]*method="post" action="\/logout"/)
    assert.equal((await browser.get('/portal')).statusCode, 200)
    const response = await browser.post('/logout', {})
    assert.equal(response.headers.location, '/login?signed-out=1')
    assert.deepEqual([...browser.cookies.keys()], ['sallyport-browser', 'sallyport-last-user'])
    assert.match((await browser.get('/login?signed-out=1')).body, /You are signed out\./)
    assert.doesNotMatch((await browser.get('/login')).body, /You are signed out/)
    browser.cookies.set('sallyport-login', id)
    assert.equal((await browser.get('/portal')).headers.location, '/login')
  })

  it('does not show "You are signed out" to a user who is signed in', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    assert.doesNotMatch((await browser.get('/login?signed-out=1')).body, /You are signed out/)
  })

  it('refuses a POST of another site, and succeeds without a login', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    assert.equal((await browser.post('/logout', {}, { 'sec-fetch-site': 'cross-site' })).statusCode, 403)
    assert.equal((await browser.get('/portal')).statusCode, 200)
    assert.equal((await auth.openBrowser().post('/logout', {})).headers.location, '/login?signed-out=1')
    assert.equal((await auth.openBrowser().get('/logout')).headers.location, '/login')
  })
})
