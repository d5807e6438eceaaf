/**
 * Sends requests to our auth server and to `oidc-provider`, wherever both claim the behaviour. What they answer is
 * compared as status, OAuth error and members; where they differ, the case has the reason.
 */
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { computeChallenge, VERIFIER } from '../src/auth/testing/test-auth-server.ts'
import { CALLBACK } from './support/oidc-oracle.ts'
import {
  BASIC,
  codeForm,
  compare,
  type Form,
  post,
  readReply,
  SCOPE,
  type Subject,
  type TestReply,
  useSubjects,
  without,
} from './support/oracle-subjects.ts'

useSubjects()

describe('authorization endpoint', () => {
  const ask =
    (different: Readonly<Record<string, string | undefined>>, extra = '') =>
    async (subject: Subject): Promise<TestReply> => {
      const all: Record<string, string | undefined> = {
        response_type: 'code',
        client_id: 'app',
        redirect_uri: CALLBACK,
        scope: SCOPE,
        state: 's',
        code_challenge: computeChallenge(VERIFIER),
        code_challenge_method: 'S256',
        aud: 'http://localhost:8080/fhir',
        ...different,
      }
      const given = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined)
      const url = `${subject.issuer}${subject.paths.authorize}?${new URLSearchParams(given)}${extra}`
      const response = await fetch(url, { redirect: 'manual' })
      await response.arrayBuffer()
      const location = response.headers.get('location')
      if (!location?.startsWith(CALLBACK)) return { status: response.status >= 400 ? 400 : 300 }
      const { searchParams, hash } = new URL(location)
      // It answers what asks for tokens in the fragment, as such a client would read it.
      const answer = searchParams.has('error') ? searchParams : new URLSearchParams(hash.slice(1))
      assert.equal(answer.get('state'), 's')
      assert.equal(answer.get('iss'), subject.issuer)
      return { status: 300, error: answer.get('error') }
    }

  compare({
    'a right request goes on to a page': { act: ask({}) },
    'an unknown client is never redirected': { act: ask({ client_id: 'nobody' }) },
    'no client is never redirected': { act: ask({ client_id: undefined }) },
    'an unregistered address is never redirected': { act: ask({ redirect_uri: 'https://evil.example/' }) },
    'a longer address is never redirected': { act: ask({ redirect_uri: `${CALLBACK}/x` }) },
    'an address with a query is never redirected': { act: ask({ redirect_uri: `${CALLBACK}?x=1` }) },
    'no response_type': { act: ask({ response_type: undefined }) },
    'response_type token': { act: ask({ response_type: 'token' }) },
    'no code_challenge': { act: ask({ code_challenge: undefined }) },
    'code_challenge without method': { act: ask({ code_challenge_method: undefined }) },
    'code_challenge_method plain': { act: ask({ code_challenge_method: 'plain' }) },
    'code_challenge_method unknown': { act: ask({ code_challenge_method: 'S512' }) },
    'a code_challenge that is too short': { act: ask({ code_challenge: 'abc' }) },
    'prompt none without a login': { act: ask({ prompt: 'none' }) },
    'prompt none with another': { act: ask({ prompt: 'none login' }) },
    'an unknown prompt': { act: ask({ prompt: 'dance' }) },
    'a negative max_age': { act: ask({ max_age: '-1' }) },
    'max_age that is no number': { act: ask({ max_age: 'soon' }) },
    'a request object': { act: ask({ request: 'e30.e30.' }) },
    'a request address': { act: ask({ request_uri: 'https://app.example/request' }) },
    'an id_token_hint of somebody else': { act: ask({ id_token_hint: 'e30.e30.AAAA' }) },
    'a scope that comes twice': { act: ask({}, '&scope=openid') },
  })
})

describe('token endpoint', () => {
  const ask =
    (form: Form, headers: Form = {}) =>
    async (subject: Subject) =>
      readReply(await post(subject, 'token', form, headers))
  const exchange =
    (different: Form = {}, headers: Form = {}, leave = '') =>
    async (subject: Subject) =>
      readReply(
        await post(subject, 'token', without(codeForm(await subject.code(), different), leave), headers),
      )

  compare({
    'a right code': { act: exchange() },
    'a code for a client with a secret': {
      act: async subject => {
        const form = without(codeForm(await subject.code('secret')), 'client_id')
        return readReply(await post(subject, 'token', form, BASIC))
      },
    },
    'a wrong verifier': { act: exchange({ code_verifier: `${VERIFIER}x` }) },
    'the challenge as verifier': { act: exchange({ code_verifier: computeChallenge(VERIFIER) }) },
    'no verifier': {
      act: exchange({}, {}, 'code_verifier'),
      but: {
        reply: { status: 400, error: 'invalid_request' },
        why: 'a missing parameter is invalid_request (RFC 6749, 5.2)',
      },
    },
    'another redirect_uri': { act: exchange({ redirect_uri: `${CALLBACK}/` }) },
    'no redirect_uri': {
      act: exchange({}, {}, 'redirect_uri'),
      but: {
        reply: { status: 400, error: 'invalid_request' },
        why: 'SMART requires it at the token endpoint, however many are registered',
      },
    },
    'no code': { act: exchange({}, {}, 'code') },
    'an unknown code': { act: ask(codeForm('unknown')) },
    'a code of another client': { act: exchange({ client_id: 'other' }) },
    'a code that was used': {
      act: async subject => {
        const form = codeForm(await subject.code())
        await post(subject, 'token', form)
        return readReply(await post(subject, 'token', form))
      },
    },
    'a refresh token after its code was used twice': {
      act: async subject => {
        const form = codeForm(await subject.code())
        const { refresh_token: token = '' } = (await (await post(subject, 'token', form)).json()) as Form
        await (await post(subject, 'token', form)).arrayBuffer()
        return readReply(
          await post(subject, 'token', {
            grant_type: 'refresh_token',
            refresh_token: token,
            client_id: 'app',
          }),
        )
      },
    },
    'no grant_type': { act: ask({ client_id: 'app' }) },
    'an unknown grant_type': { act: ask({ grant_type: 'password', client_id: 'app' }) },
    'no client': {
      act: ask(without(codeForm('x'), 'client_id')),
      but: {
        reply: { status: 401, error: 'invalid_client' },
        why: 'a client that is not named did not authenticate (RFC 6749, 5.2)',
      },
    },
    'an unknown client': { act: ask(codeForm('x', { client_id: 'nobody' })) },
    'a wrong secret': {
      act: ask(without(codeForm('x'), 'client_id'), {
        authorization: `Basic ${Buffer.from('secret:x').toString('base64')}`,
      }),
    },
    'no secret': { act: ask(codeForm('x', { client_id: 'secret' })) },
    'two methods': { act: ask({ ...codeForm('x', { client_id: 'secret' }), client_secret: 'x' }, BASIC) },
    'a body in JSON': {
      act: async subject =>
        readReply(
          await fetch(subject.issuer + subject.paths.token, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(codeForm('x')),
          }),
        ),
    },
    'an unknown refresh token': {
      act: ask({ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'app' }),
    },
    'no refresh token': { act: ask({ grant_type: 'refresh_token', client_id: 'app' }) },
  })
})
