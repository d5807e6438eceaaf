import { type Static, Type } from 'typebox'
import { CLOSED } from '../../../endpoint/index.ts'

export const Matter = Type.Object(
  {
    code: Type.String({ description: 'For example `apps-unverified`. The same for the same matter.' }),
    text: Type.String(),
    path: Type.String({ description: 'The page below `/admin` where something can be done about it.' }),
  },
  CLOSED,
)

/** Something that an administrator should look at. */
export type Matter = Static<typeof Matter>
