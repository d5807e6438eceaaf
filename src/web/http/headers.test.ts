import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createPagePolicy, defineCookie } from './index.ts'
import { useServers } from './testing/make-server.ts'

function directive(policy: string, name: string): string | undefined {
  return policy
    .split('; ')
    .find(part => part.startsWith(`${name} `))
    ?.slice(name.length + 1)
}

describe('createPagePolicy', () => {
  const targets: readonly (readonly [url: string, source: string])[] = [
    ['http://localhost:8081/launch?x=1', "'self' http://localhost:8081"],
    ['https://app.example.org', "'self' https://app.example.org"],
    ['com.example.app:/callback', "'self' com.example.app:"],
    ["not an url; script-src 'unsafe-inline'", "'self'"],
    ['http://[::1]:8081/callback', "'self' http://[::1]:8081"],
    ['http://my_app:8081/callback', "'self' http://my_app:8081"],
    ['https://*/callback', "'self'"],
    ['https://*.example.org/callback', "'self'"],
    ['data:text/html,x', "'self'"],
    ['javascript:alert(1)', "'self'"],
  ]
  for (const [url, source] of targets) {
    it(`has the form targets ${source} for ${url}`, () => {
      const policy = createPagePolicy({ formTargets: [url] })
      assert.equal(directive(policy, 'form-action'), source)
      assert.equal(directive(policy, 'script-src'), "'self'")
    })
  }

  it('forbids framing before any directive that contains a URL (HTTP-5)', () => {
    assert.match(createPagePolicy({ formTargets: ['https://app.example'] }), /^frame-ancestors 'none'; /)
  })

  // Nearly every ASCII character is legal somewhere in the host or path of a URL; `;` ends a directive, `,` a policy.
  it('keeps its directives, whatever characters a URL contains (HTTP-5)', () => {
    const names = (policy: string) => policy.split(/[;,]/).map(part => part.trim().split(' ')[0])
    for (let code = 0x20; code < 0x7f; code++) {
      const c = String.fromCharCode(code)
      for (const url of [
        `https://a${c}frame-ancestors${c}*/logo.png`,
        `https://a.example/x${c}frame-ancestors${c}*`,
        `com.example${c}a:/x`,
        `com.example.a://x${c}y/z`,
      ]) {
        const policy = createPagePolicy({ formTargets: [url], images: [url] })
        assert.deepEqual(names(policy), names(createPagePolicy()), url)
      }
    }
  })

  it('lists each origin once', () => {
    const policy = createPagePolicy({
      formTargets: ['https://a.example/launch', 'https://a.example/callback'],
    })
    assert.equal(directive(policy, 'form-action'), "'self' https://a.example")
  })
})

describe('defineCookie', () => {
  it('makes cookies HttpOnly and Lax for the whole site (HTTP-4)', () => {
    assert.deepEqual(defineCookie('http://localhost:9000', 'sallyport-login'), {
      name: 'sallyport-login',
      attributes: { httpOnly: true, sameSite: 'lax', secure: false, path: '/', priority: 'high' },
    })
  })

  it('makes cookies Secure and bound to the host under https (HTTP-4)', () => {
    const { name, attributes } = defineCookie('https://auth.example.org', 'sallyport-login')
    assert.equal(name, '__Host-sallyport-login')
    assert.equal(attributes.secure, true)
    assert.equal(attributes.domain, undefined)
  })
})

describe('response headers', () => {
  const make = useServers()

  it('include the strict policy for a page', async () => {
    const { app } = await make()
    const { headers } = await app.inject('/page/1')
    assert.equal(
      headers['content-security-policy'],
      "frame-ancestors 'none'; default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'",
    )
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['referrer-policy'], 'same-origin')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['strict-transport-security'], undefined)
  })

  it('include a policy that allows nothing for other content', async () => {
    const { app } = await make()
    const { headers } = await app.inject('/oauth2/things')
    assert.equal(
      headers['content-security-policy'],
      "frame-ancestors 'none'; default-src 'none'; base-uri 'none'",
    )
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['referrer-policy'], 'no-referrer')
  })

  it('keep the values that a handler set', async () => {
    const { app } = await make()
    app.get('/kept', async (_request, reply) =>
      reply.header('cache-control', 'public, max-age=60').header('referrer-policy', 'origin').send({}),
    )
    const { headers } = await app.inject('/kept')
    assert.equal(headers['cache-control'], 'public, max-age=60')
    assert.equal(headers['referrer-policy'], 'origin')
  })

  it('include HSTS under https', async () => {
    const { app } = await make({ url: 'https://auth.example.org' })
    const { headers } = await app.inject('/page/1')
    assert.equal(headers['strict-transport-security'], 'max-age=31536000')
  })
})
