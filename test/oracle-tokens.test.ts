/** As in oracle.test.ts, for token lifecycles and private_key_jwt clients. */
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import {
  BASIC,
  codeForm,
  compare,
  type Form,
  keyed,
  post,
  readReply,
  type Subject,
  useSubjects,
  without,
} from './support/oracle-subjects.ts'

useSubjects()

describe('refresh', () => {
  const bought = async (subject: Subject) =>
    (await (await post(subject, 'token', codeForm(await subject.code()))).json()) as Form
  const refresh = async (subject: Subject, token = '', different: Form = {}) =>
    post(subject, 'token', {
      grant_type: 'refresh_token',
      refresh_token: token,
      client_id: 'app',
      ...different,
    })

  compare({
    'a right one': {
      act: async subject => readReply(await refresh(subject, (await bought(subject)).refresh_token)),
    },
    'with fewer scopes': {
      act: async subject =>
        readReply(await refresh(subject, (await bought(subject)).refresh_token, { scope: 'openid' })),
    },
    'with more scopes': {
      act: async subject =>
        readReply(
          await refresh(subject, (await bought(subject)).refresh_token, { scope: 'openid system/*.rs' }),
        ),
    },
    'by another client': {
      act: async subject =>
        readReply(await refresh(subject, (await bought(subject)).refresh_token, { client_id: 'other' })),
    },
    'with the token of before, at once': {
      act: async subject => {
        const { refresh_token: token } = await bought(subject)
        await (await refresh(subject, token)).arrayBuffer()
        return readReply(await refresh(subject, token))
      },
      but: {
        reply: {
          status: 200,
          members: ['access_token', 'expires_in', 'id_token', 'refresh_token', 'scope', 'token_type'],
        },
        why: 'a lost response may be asked for again within 60 s and gets the same successor',
      },
    },
    'with the token of before, after its successor was used': {
      act: async subject => {
        const { refresh_token: token } = await bought(subject)
        const { refresh_token: next } = (await (await refresh(subject, token)).json()) as Form
        await (await refresh(subject, next)).arrayBuffer()
        return readReply(await refresh(subject, token))
      },
    },
  })
})

describe('private_key_jwt and client_credentials', () => {
  const ask =
    (
      claims: Readonly<Record<string, unknown>>,
      header: Readonly<Record<string, unknown>> = {},
      form: Form = {},
    ) =>
    async (subject: Subject) => {
      const proof = keyed.makeProof({ aud: subject.issuer, ...claims }, header)
      return readReply(
        await post(subject, 'token', {
          grant_type: 'client_credentials',
          scope: 'system/*.rs',
          ...proof,
          ...form,
        }),
      )
    }
  const seconds = Math.floor(Date.now() / 1000)

  compare({
    'a right assertion': { act: ask({}) },
    'aud of another server': { act: ask({ aud: 'https://other.example' }) },
    'an assertion that is over': { act: ask({ exp: seconds - 100 }) },
    'no exp': { act: ask({ exp: undefined }) },
    'no jti': { act: ask({ jti: undefined }) },
    'another sub': { act: ask({ sub: 'app' }) },
    'another iss': { act: ask({ iss: 'app' }) },
    'an unknown kid': { act: ask({}, { kid: 'nobody' }) },
    'alg none': { act: ask({}, { alg: 'none' }) },
    'alg HS256': { act: ask({}, { alg: 'HS256' }) },
    'an assertion of no form': {
      act: ask({}, {}, { client_assertion: 'nonsense' }),
      but: {
        reply: { status: 401, error: 'invalid_client' },
        why: 'SMART: whatever is wrong with an assertion is invalid_client',
      },
    },
    'an assertion that was used': {
      act: async subject => {
        const proof = keyed.makeProof({ aud: subject.issuer })
        const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...proof }
        await (await post(subject, 'token', form)).arrayBuffer()
        return readReply(await post(subject, 'token', form))
      },
    },
    'a public client': {
      act: async subject =>
        readReply(
          await post(subject, 'token', {
            grant_type: 'client_credentials',
            client_id: 'app',
            scope: 'system/*.rs',
          }),
        ),
      but: {
        reply: { status: 400, error: 'unauthorized_client' },
        why: 'the client may not use this grant type (RFC 6749, 5.2)',
      },
    },
  })
})

describe('introspection, revocation and userinfo', () => {
  const bought = async (subject: Subject) => {
    const form = without(codeForm(await subject.code('secret')), 'client_id')
    return (await (await post(subject, 'token', form, BASIC)).json()) as Form
  }
  const refreshed = async (subject: Subject, token = '') =>
    readReply(await post(subject, 'token', { grant_type: 'refresh_token', refresh_token: token }, BASIC))
  const userinfo = (subject: Subject, headers: Form) =>
    fetch(subject.issuer + subject.paths.userinfo, { headers })

  compare({
    'introspection of its own refresh token': {
      act: async subject =>
        readReply(
          await post(subject, 'introspect', { token: (await bought(subject)).refresh_token ?? '' }, BASIC),
        ),
    },
    'introspection of an unknown token': {
      act: async subject => readReply(await post(subject, 'introspect', { token: 'x' }, BASIC)),
    },
    'introspection without a token': {
      act: async subject => readReply(await post(subject, 'introspect', {}, BASIC)),
    },
    'introspection by nobody known': {
      act: async subject => readReply(await post(subject, 'introspect', { token: 'x', client_id: 'nobody' })),
    },
    'revocation of an unknown token': {
      act: async subject => readReply(await post(subject, 'revoke', { token: 'x' }, BASIC)),
    },
    'revocation without a token': {
      act: async subject => readReply(await post(subject, 'revoke', {}, BASIC)),
    },
    'revocation by nobody known': {
      act: async subject => readReply(await post(subject, 'revoke', { token: 'x', client_id: 'nobody' })),
    },
    'a refresh after its revocation': {
      act: async subject => {
        const { refresh_token: token = '' } = await bought(subject)
        assert.equal((await post(subject, 'revoke', { token }, BASIC)).status, 200)
        return refreshed(subject, token)
      },
    },
    'a refresh after a revocation by another client': {
      act: async subject => {
        const { refresh_token: token = '' } = await bought(subject)
        assert.equal((await post(subject, 'revoke', { token, client_id: 'app' })).status, 200)
        return refreshed(subject, token)
      },
    },
    'userinfo with nonsense': {
      act: async subject => readReply(await userinfo(subject, { authorization: 'Bearer x' })),
    },
    'userinfo without a token': {
      act: async subject => readReply(await userinfo(subject, {})),
      but: {
        reply: { status: 401, error: 'invalid_request' },
        why: 'a request without token is answered with 401 (RFC 6750, 3)',
      },
    },
  })
})
