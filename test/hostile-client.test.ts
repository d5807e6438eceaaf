/** A hostile client at the authorization server. The numbers are those of the attacks in docs/internal/smart-conformance.md. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Case, type Expected, refuses } from './support/hostile-cases.ts'
import { CALLBACK, CHALLENGE, type Form, HostileClient, send, VERIFIER } from './support/hostile-client.ts'
import { type Stack, startStack } from './support/stack.ts'

let stack: Stack
let client: HostileClient
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
  client = await HostileClient.register(stack)
})
after(() => stack?.close())

describe('an authorization request', () => {
  const ask = (different: Readonly<Record<string, string | undefined>>, extra = '') =>
    (() => client.authorize(different, extra)) satisfies Case[0]
  const page: Expected = [400, undefined]
  const redirectWith = (error: string): Expected => [302, error]

  refuses({
    '43 code_challenge_method missing': [
      ask({ code_challenge_method: undefined }),
      ...redirectWith('invalid_request'),
    ],
    '43 code_challenge_method plain': [
      ask({ code_challenge_method: 'plain', code_challenge: VERIFIER }),
      ...redirectWith('invalid_request'),
    ],
    '43 no code_challenge': [
      ask({ code_challenge: undefined, code_challenge_method: undefined }),
      ...redirectWith('invalid_request'),
    ],
    '44 no aud': [ask({ aud: undefined }), ...redirectWith('invalid_request')],
    '44 aud of another server': [
      ask({ aud: 'https://evil.example/fhir' }),
      ...redirectWith('invalid_request'),
    ],
    '44 aud twice': [ask({}, '&aud=https://evil.example/fhir'), ...redirectWith('invalid_request')],
    '44 another resource beside aud': [
      ask({ resource: 'https://evil.example' }),
      ...redirectWith('invalid_target'),
    ],
    '45 another address': [ask({ redirect_uri: 'https://evil.example/callback' }), ...page],
    '45 a longer address': [ask({ redirect_uri: `${CALLBACK}/x` }), ...page],
    '45 an address with a query': [ask({ redirect_uri: `${CALLBACK}?next=//evil.example` }), ...page],
    '45 an address with user and password': [
      ask({ redirect_uri: 'https://victim.example@evil.example/callback' }),
      ...page,
    ],
    '45 upper case': [ask({ redirect_uri: 'https://VICTIM.example/callback' }), ...page],
    '45 a way around': [ask({ redirect_uri: 'https://victim.example/x/../callback' }), ...page],
    '45 a subdomain': [ask({ redirect_uri: 'https://victim.example.evil.example/callback' }), ...page],
    '45 the address twice': [ask({}, '&redirect_uri=https://evil.example/callback'), ...page],
    '45 no address': [ask({ redirect_uri: undefined }), ...page],
    '45 an unknown client': [ask({ client_id: 'nobody' }), ...page],
    '45 a client whose name is a script': [ask({ client_id: '<script>alert(1)</script>' }), ...page],
    '47 unknown scopes only': [ask({ scope: '__proto__ toString frob' }), ...redirectWith('invalid_scope')],
    '47 system scopes of a user': [
      ask({ scope: 'system/*.rs __launch-contexts.c' }),
      ...redirectWith('invalid_scope'),
    ],
    '49 patient scopes without a patient': [ask({ scope: 'patient/*.rs' }), ...redirectWith('invalid_scope')],
    '50 an invented launch': [
      ask({ scope: 'launch', launch: 'a'.repeat(43) }),
      ...redirectWith('invalid_request'),
    ],
    '50 a launch without its scope': [
      async () => client.authorize({ launch: await client.launch() }),
      ...redirectWith('invalid_request'),
    ],
    '50 a launch of another app': [
      async () => client.authorize({ scope: 'launch', launch: await client.launch(client.apps.own) }),
      ...redirectWith('invalid_request'),
    ],
    '50 a launch that was used': [
      async () => {
        const launch = await client.launch()
        assert.ok(await client.code({ scope: 'launch openid', launch }))
        return client.authorize({ scope: 'launch openid', launch })
      },
      ...redirectWith('invalid_request'),
    ],
    'tokens without a code': [
      ask({ response_type: 'token id_token' }),
      ...redirectWith('unsupported_response_type'),
    ],
    'an answer in the fragment': [ask({ response_mode: 'fragment' }), ...redirectWith('invalid_request')],
    'a request object': [ask({ request: 'e30.e30.' }), ...redirectWith('request_not_supported')],
    'a request by address': [
      ask({ request_uri: 'http://169.254.169.254/' }),
      ...redirectWith('request_uri_not_supported'),
    ],
    'a state that comes twice': [ask({}, '&state=abc'), ...redirectWith('invalid_request')],
  })

  it('61 gets its state back unchanged', async () => {
    const state = `a b+c%20&x=1#"'<>é😀${'s'.repeat(4000)}`
    const { location = '' } = await client.authorize({ state, scope: 'frob' })
    assert.equal(new URL(location).searchParams.get('state'), state)
  })
})

describe('a token request', () => {
  const exchange =
    (different: Form, headers: Form = {}) =>
    async () =>
      client.exchange(await client.code(), different, headers)
  const refresh = async (different: Form = {}, token = '') => {
    const refresh_token = token || (await client.stolen()).refresh_token
    const form = { grant_type: 'refresh_token', refresh_token, client_id: client.apps.victim }
    return client.post('/oauth2/token', { ...form, ...different })
  }

  refuses({
    '43 no verifier': [exchange({ code_verifier: '' }), 400, 'invalid_request'],
    '43 another verifier': [exchange({ code_verifier: `${VERIFIER}x` }), 400, 'invalid_grant'],
    '43 the challenge as verifier': [exchange({ code_verifier: CHALLENGE }), 400, 'invalid_grant'],
    '45 another redirect_uri': [exchange({ redirect_uri: `${CALLBACK}/` }), 400, 'invalid_grant'],
    '45 no redirect_uri': [exchange({ redirect_uri: '' }), 400, 'invalid_request'],
    '46 a code of another client': [
      async () => client.exchange(await client.code(), { client_id: client.apps.own }),
      400,
      'invalid_grant',
    ],
    '46 a code that was used': [
      async () => {
        const code = await client.code()
        assert.equal((await client.exchange(code)).status, 200)
        return client.exchange(code)
      },
      400,
      'invalid_grant',
    ],
    '46 the refresh token of a code that was used twice': [
      async () => {
        const code = await client.code()
        const { refresh_token: token } = JSON.parse((await client.exchange(code)).body)
        await client.exchange(code)
        return refresh({}, token)
      },
      400,
      'invalid_grant',
    ],
    '46 a form in JSON': [
      () => client.post('/oauth2/token', '{}', { 'content-type': 'application/json' }),
      400,
      'invalid_request',
    ],
    '53 a wider scope': [() => refresh({ scope: 'openid user/*.rs' }), 400, 'invalid_scope'],
    '53 a refresh token of another client': [
      () => refresh({ client_id: client.apps.own }),
      400,
      'invalid_grant',
    ],
    '53 a token of before, once its successor was used': [
      async () => {
        const { refresh_token: first } = await client.stolen()
        const { refresh_token: second } = JSON.parse((await refresh({}, first)).body)
        assert.equal((await refresh({}, second)).status, 200)
        return refresh({}, first)
      },
      400,
      'invalid_grant',
    ],
    '56 a client with a secret, without it': [
      exchange({ client_id: '' }, { authorization: `Basic ${btoa('x:')}` }),
      401,
      'invalid_client',
    ],
    '57 a guessed secret': [
      async () => client.exchange('x', { client_id: client.apps.secret, client_secret: 'guess' }),
      401,
      'invalid_client',
    ],
    '57 a secret twice over': [
      async () =>
        client.exchange(
          'x',
          { client_id: client.apps.secret, client_secret: 'x' },
          { authorization: `Basic ${btoa(`${client.apps.secret}:x`)}` },
        ),
      400,
      'invalid_request',
    ],
    'the password of the clinician': [
      () =>
        client.post('/oauth2/token', {
          grant_type: 'password',
          username: 'clinician',
          password: 'sallyport',
          client_id: client.apps.victim,
        }),
      400,
      'unsupported_grant_type',
    ],
    'a grant type that every object has': [
      () => client.post('/oauth2/token', { grant_type: 'constructor', client_id: client.apps.victim }),
      400,
      'unsupported_grant_type',
    ],
    '58 client_credentials of an app': [
      () =>
        client.post('/oauth2/token', {
          grant_type: 'client_credentials',
          scope: 'system/*.rs',
          client_id: client.apps.own,
        }),
      400,
      'unauthorized_client',
    ],
  })
})

describe('the auth server', () => {
  it('55 reveals nothing about a token to other callers', async () => {
    const { access_token: token } = await client.stolen()
    for (const form of [
      { token },
      { token, client_id: client.apps.victim },
      { token, client_id: client.apps.secret },
    ])
      assert.equal((await client.post('/oauth2/introspect', form)).status, 401)
  })

  it('60 allows no page of another origin to read tokens, and none with cookies', async () => {
    for (const origin of ['https://evil.example.victim.example', 'null', 'http://victim.example'])
      for (const path of ['/oauth2/token', '/oauth2/revoke', '/oauth2/userinfo', '/launch-contexts']) {
        const { headers } = await client.post(path, { client_id: client.apps.victim, token: 'x' }, { origin })
        assert.equal(headers.get('access-control-allow-origin'), null, `${origin} ${path}`)
        assert.equal(headers.get('access-control-allow-credentials'), null)
      }
  })

  it('63 generates its documents independently of the Host header', async () => {
    for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
      const { body } = await send(client.at(path), { headers: { 'x-forwarded-host': 'evil.example' } })
      assert.doesNotMatch(body, /evil/)
    }
  })

  it('54, 62 forbids caching and framing of every response', async () => {
    for (const path of [
      '/login',
      '/portal',
      '/manage',
      '/oauth2/consent?interaction=x',
      '/oauth2/pick?interaction=x',
    ]) {
      const { headers } = await send(client.at(path))
      assert.equal(headers.get('cache-control'), 'no-store', path)
      assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, path)
    }
    const { headers } = await client.post('/oauth2/token', {})
    assert.deepEqual([headers.get('cache-control'), headers.get('pragma')], ['no-store', 'no-cache'])
  })
})
