"""rdkit's MolStandardize: the parent of a salt, without charges, and one tautomer of several."""

from __future__ import annotations

from typing import Any

from censnet.data.tables.schema import Standardize

WITH_TAUTOMERS = 150  # atoms; what is larger keeps the tautomer that was given
MOST_TAUTOMERS = 200  # that are looked at


class Standardizer:
    """Bring a molecule to a standard form.

    Args:
        how: ``"fragment"`` keeps the largest fragment, an organic one if there is one; ``"parent"`` removes its charges
            too, by adding and removing protons; ``"tautomer"`` takes rdkit's canonical tautomer of that.
    """

    def __init__(self, how: Standardize) -> None:
        from rdkit.Chem.MolStandardize import rdMolStandardize  # a moment, for those who ask for it

        self._fragments = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
        self._charges = rdMolStandardize.Uncharger() if how in ("parent", "tautomer") else None
        self._tautomers = None
        if how == "tautomer":
            self._tautomers = rdMolStandardize.TautomerEnumerator()
            self._tautomers.SetMaxTautomers(MOST_TAUTOMERS)

    def apply(self, molecule: Any) -> Any:
        """The standard form of a molecule, as a new molecule."""
        found = self._fragments.choose(molecule)
        if self._charges is not None:
            found = self._charges.uncharge(found)
        if self._tautomers is not None and found.GetNumAtoms() <= WITH_TAUTOMERS:
            found = self._tautomers.Canonicalize(found)
        return found
