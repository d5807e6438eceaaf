import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfiguration } from '../../config/index.ts'
import { formatBanner } from '../commands/start.ts'

const samples = [{ kind: 'Patient', username: 'alba' }]
const login = { username: 'clinician', password: 'the-password', seeded: true, samples }
const print = (
  env: Record<string, string>,
  ...rest: [Parameters<typeof formatBanner>[1], Parameters<typeof formatBanner>[2]]
) => formatBanner(readConfiguration(env, '/nowhere'), ...rest)

describe('banner', () => {
  it('has the three URLs, the test login and how to stop (PATIENTS-7, START-1)', () => {
    const text = print({}, ['auth', 'fhir', 'app'], { ...login, seeded: false })
    assert.match(text, /Stop it with Ctrl-C/)
    assert.match(text, /^ {2}Portal +http:\/\/localhost:9000\/portal$/m)
    assert.match(text, /^ {2}Auth server +http:\/\/localhost:9000$/m)
    assert.match(text, /^ {2}FHIR server +http:\/\/localhost:8080\/fhir$/m)
    assert.match(text, /^ {2}App server +http:\/\/localhost:8081$/m)
    assert.match(text, /^ {2}Test login +clinician \/ the-password$/m)
    assert.match(text, /^ {2}Patient login +alba \/ the-password$/m)
  })

  it('names the gateway, its upstream and the policy', () => {
    const env = {
      SMART_FHIR_UPSTREAM_URL: 'http://127.0.0.1:8090/r4',
      SMART_POLICY_FILE: '/etc/sallyport/policy.yaml',
    }
    const text = print(env, ['fhir'], undefined)
    assert.match(text, /^ {2}Gateway +http:\/\/localhost:8080\/fhir$/m)
    assert.match(text, /^ {4}in front of +http:\/\/127\.0\.0\.1:8090\/r4$/m)
    assert.match(text, /^ {4}by policy +\/etc\/sallyport\/policy\.yaml$/m)
    assert.doesNotMatch(text, /FHIR server/)
    assert.doesNotMatch(print(env, ['auth'], undefined), /Gateway|policy/)
    assert.match(
      print({ SMART_POLICY_FILE: 'p.yaml' }, ['fhir'], undefined),
      /FHIR server.*\n +by policy +.*p\.yaml/,
    )
  })

  it('names only started servers (START-2)', () => {
    const text = print({}, ['fhir'], undefined)
    assert.match(text, /FHIR server/)
    assert.doesNotMatch(text, /Auth server|App server|login/)
  })

  it('shows a generated password once if not on loopback (LOGIN-3)', () => {
    const env = { SMART_BIND: '0.0.0.0' }
    assert.match(print(env, ['auth'], login), /clinician \/ the-password \(shown only once\)/)
    assert.doesNotMatch(print(env, ['auth'], { ...login, seeded: false }), /the-password/)
  })

  it('never shows a configured password', () => {
    const text = print({ SMART_SEED_CLINICIAN_PASSWORD: 'the-password' }, ['auth'], login)
    assert.doesNotMatch(text, /the-password/)
    assert.match(text, /clinician, with the password from SMART_SEED_CLINICIAN_PASSWORD/)
  })
})
