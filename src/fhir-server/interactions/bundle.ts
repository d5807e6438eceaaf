import type { Handler } from '../call.ts'

export const bundle: Handler<'bundle'> = () => ({
  problem: 'not-supported',
  text: 'Cannot process Bundles yet',
})
