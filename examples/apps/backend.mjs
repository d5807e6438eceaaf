import { log } from 'node:console'
import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { env } from 'node:process'

const CLIENT_ID = 'my-service'
const SCOPE = 'system/Patient.rs'
const FHIR_BASE = 'http://localhost:8080/fhir'
const READS = ['Patient?_count=5']

async function getJson(url, options) {
  const response = await fetch(url, options)
  const body = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(body))
  return body
}

function signAssertion(audience) {
  const key = createPrivateKey(readFileSync('private-key.pem'))
  const alg = key.asymmetricKeyType === 'ec' ? 'ES384' : 'RS384'
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    iss: CLIENT_ID,
    sub: CLIENT_ID,
    aud: audience,
    exp: now + 300,
    iat: now,
    jti: randomUUID(),
  }
  const content = [{ alg, kid: env.KID, typ: 'JWT' }, claims]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha384', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return `${content}.${signature.toString('base64url')}`
}

const { token_endpoint } = await getJson(`${FHIR_BASE}/.well-known/smart-configuration`)
const { access_token } = await getJson(token_endpoint, {
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'client_credentials',
    scope: SCOPE,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: signAssertion(token_endpoint),
  }),
})
const headers = { Authorization: `Bearer ${access_token}` }
const found = {}
for (const path of READS) found[path] = await getJson(`${FHIR_BASE}/${path}`, { headers })
log(JSON.stringify(found, null, 2))
