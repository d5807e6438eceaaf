import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cookiePlan, pagePolicy } from './index.ts'

function directive(policy: string, name: string): string | undefined {
  return policy
    .split('; ')
    .find(part => part.startsWith(`${name} `))
    ?.slice(name.length + 1)
}

describe('pagePolicy', () => {
  const targets: readonly (readonly [address: string, source: string])[] = [
    ['http://localhost:8081/launch?x=1', "'self' http://localhost:8081"],
    ['https://app.example.org', "'self' https://app.example.org"],
    ['com.example.app:/callback', "'self' com.example.app:"],
    ["not an address; script-src 'unsafe-inline'", "'self' "],
  ]
  for (const [address, source] of targets) {
    it(`lets a form end at ${address} by its origin only`, () => {
      const policy = pagePolicy({ formTargets: [address] })
      assert.equal(directive(policy, 'form-action'), source)
      assert.equal(directive(policy, 'script-src'), "'self'")
    })
  }

  it('lets nobody frame the page unless named', () => {
    assert.equal(directive(pagePolicy(), 'frame-ancestors'), "'none'")
    const policy = pagePolicy({ frameAncestors: ['https://ehr.example.org/x'] })
    assert.equal(directive(policy, 'frame-ancestors'), 'https://ehr.example.org')
  })
})

describe('cookiePlan', () => {
  it('is HttpOnly and Lax, on the whole site', () => {
    assert.deepEqual(cookiePlan('http://localhost:9000', 'sallyport-login'), {
      name: 'sallyport-login',
      attributes: { httpOnly: true, sameSite: 'lax', secure: false, path: '/' },
    })
  })

  it('is Secure and bound to the host under https', () => {
    const { name, attributes } = cookiePlan('https://auth.example.org', 'sallyport-login')
    assert.equal(name, '__Host-sallyport-login')
    assert.equal(attributes.secure, true)
    assert.equal(attributes.domain, undefined)
  })
})
