import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { expressInterceptor } from '../index.ts'
import type { HostOptions } from '../interceptor.ts'
import { checkOptions } from './check-options.ts'

const OPTIONS: HostOptions = { authUrl: 'http://localhost:9000', fhirBaseUrl: 'https://fhir.example/fhir' }

const TRUSTED = { issuer: 'https://idp.example', jwksUrl: 'https://idp.example/keys' }

describe('the options of a host', () => {
  it('are accepted if they are right', () => {
    checkOptions({ ...OPTIONS, contexts: ['patient', 'user', 'system'], onDecision: () => {} })
    for (const smartConfiguration of [{}, 'host'] as const)
      checkOptions({ ...OPTIONS, authUrl: undefined, trustedIssuers: [TRUSTED], smartConfiguration })
  })

  const wrong: readonly (readonly [object, string])[] = [
    [{ onDecison: () => {} }, 'Unknown option onDecison: did you mean onDecision?'],
    [{ elephants: 1 }, 'Unknown option elephants'],
    [
      { authUrl: 'localhost:9000' },
      'Option authUrl: expected a URL with http or https, not "localhost:9000"',
    ],
    [{ authUrl: undefined }, 'Option authUrl: expected a URL with http or https, not nothing'],
    [
      { authUrl: undefined, trustedIssuers: [] },
      'Option authUrl: expected a URL with http or https, not nothing',
    ],
    [
      { authUrl: undefined, trustedIssuers: [TRUSTED] },
      'Option smartConfiguration: without authUrl, expected a document, or "host"',
    ],
    [{ fhirBaseUrl: '/fhir' }, 'Option fhirBaseUrl: expected a URL with http or https, not "/fhir"'],
    [{ contexts: ['patent'] }, 'Option contexts: expected patient, user, system, not "patent"'],
  ]
  for (const [more, message] of wrong)
    it(`are refused: ${message} (LIBRARY-12)`, () =>
      assert.throws(() => checkOptions({ ...OPTIONS, ...more }), new TypeError(message)))

  it('are refused if they are missing (LIBRARY-12)', () =>
    assert.throws(
      () => Reflect.apply(expressInterceptor, undefined, []),
      new TypeError('Expected options: { authUrl, fhirBaseUrl }'),
    ))
})
