import type { Handler } from '../call.ts'

/** `metadata`: what this server can do. Public (contract 5.6). */
export const capabilities: Handler<'capabilities'> = context => ({
  status: 200,
  body: context.capabilities(),
})

/** `.well-known/smart-configuration`: where tokens come from. Public, and plain JSON. */
export const smartConfiguration: Handler<'smart-configuration'> = context => ({
  status: 200,
  body: JSON.stringify(context.smartConfiguration()),
  headers: { 'content-type': 'application/json; charset=utf-8' },
})
