"""The attacker: exact bounds of hidden cells, the verdict on protection levels, and certificates anyone can check."""

from tabprotect.attacker.attack import attack as attack
from tabprotect.attacker.certificate import Certificate as Certificate
from tabprotect.attacker.certificate import Verification as Verification
from tabprotect.attacker.certificate import verify as verify
from tabprotect.attacker.knowledge import Knowledge as Knowledge
from tabprotect.attacker.published import Published as Published
from tabprotect.attacker.published import read_published as read_published
from tabprotect.attacker.result import Attack as Attack

__all__ = ["Attack", "Certificate", "Knowledge", "Published", "Verification", "attack", "read_published", "verify"]
