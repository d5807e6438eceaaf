import type { Handler } from '../call.ts'

/** Operations beyond the interactions: none is done here (contract 5.2, "refused unless listed"). */
export const operation: Handler<'operation'> = (_context, { interaction }) => ({
  problem: 'not-supported',
  text: `Cannot do ${interaction.name}: this server has no operations`,
})
